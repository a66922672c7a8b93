// Command mutate breaks the code in known ways and demands that a named test
// notices each of them.
//
// The concurrency protocols hold because of a few lines that look superfluous:
// a second look, a wait, a counter added after and not before. A test that
// would still pass without the line shows nothing. So each such line has a
// mutation here, and the mutation names the test that must fail:
//
//	Subject: no second look after stalled
//	Test: ./hw/loop TestSendMeetsALateReceive
//	Flags: -race -count=3
//
//	diff --git a/hw/loop/pipe.go b/hw/loop/pipe.go
//	--- a/hw/loop/pipe.go
//	+++ b/hw/loop/pipe.go
//	@@ -64,3 +64,3 @@
//	 	p.stalled.Store(true)
//	-	if p.secondLook() {
//	+	if false {
//	 		p.stalled.Store(false)
//
// The mutations are the patches mutations/*/*.patch. The old text of each hunk, with
// its context, must occur exactly once in its file; line numbers do not matter. To
// make one, change the code, and print the change with git diff -U1. Of the flags,
// -race and -tags go to the compiler, the others to the test; -count=10 gives a race
// ten tries to be lost, and the first that fails ends them.
//
// Nothing in the tree is touched: a changed file reaches the compiler through
// its overlay. A run fails when a mutation survives, when its old text is not
// found, when it does not compile, and when the named test does not exist or
// fails without it.
//
// A mutation survives when its test passes twenty times. One that was killed after
// fewer passes fails no run, but is shown: its test leaves the kill to chance, and
// another that does not should take its place. To find those, have each killed
// more than once: -kills 3.
package main
