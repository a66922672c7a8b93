// Command mutate breaks the code in known ways and checks that a named test
// notices each of them.
//
// The concurrency protocols depend on a few lines that look superfluous: a second
// look, a wait, a counter that is increased afterwards and not before. A test that
// still passes without the line does not check it. So each such line has a mutation
// here, and the mutation names the test that must fail without the line. There are at most 200, for
// the protocols: tokens, rings, releases, delivery, what is kept, credits, journals. A line whose
// mutation only the test finds that was written for it, and that is no part of a protocol, has none:
// the seeded world (check/world) judges such code.
//
//	Subject: a pipe that stalls does not look for a receive once more
//	Test: ./hw/loop TestASendMeetsItsReceiveAtAnyPoint -race
//	@@ hw/loop/pipe.go
//	-		if x.dst.ready() {
//	-			return false
//	-		}
//
// The mutations are the patches mutations/*/*.patch. The old text of each hunk must occur exactly once in its file,
// so a hunk has as many lines of context as that takes, and no line numbers. To make a patch, change the code, and
// write the lines that git diff marks behind @@ and the file; all that it prints is as good. Of the flags behind
// the test, -race and -tags go to the compiler, the others to the test. With -count=10 the test
// runs ten times, so that a race has ten chances to be lost; the first failure ends it.
// -timeout is the most that a run may take. A run is ended sooner, as one that hangs, when it
// takes twenty times what it took without the mutation, and three seconds at least. The first run that
// hangs is repeated and not counted, since a machine that pauses makes a test late, too.
//
// mutate changes no file of the tree: a changed file reaches the compiler through its
// overlay. A run fails when a mutation survives, when its old text is not found, when
// it does not compile, and when the named test does not exist or fails without the
// mutation. -short and -test measure instead: survivors do not fail such a run, and what could not be tried does, and
// is left out of the share. Status 2 is that of a command line that makes no sense.
//
// A mutation survives when its test passes twenty times. A mutation whose test passed
// less often before it failed does not fail the run, but mutate prints it: its test
// leaves the kill to chance and should be replaced by one that does not. With -kills 3
// mutate kills each mutation three times, which finds more of these.
package main
