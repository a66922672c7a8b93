// Package line has the way of a post, from the call that makes it to the event that ends it. A [Mailbox] has two
// [Queue]s, of requests and of receives. Each is a ring of slots, and a post's number, its ticket, says its slot:
//
//	retired ≤ next ≤ tail ≤ retired + depth
//
// Seven stages move a post on. Each has one writer, so none needs a lock:
//
//	1 check     the poster      against a snapshot of rules and state           check.go
//	2 reserve   the poster      a place for the event, where it will go         admit.go
//	3 ticket    the poster      one swap moves tail, and takes a free token     token.go
//	4 fill      the poster      the slot that the ticket says                   admit.go
//	5 hand      the holder      to the provider; moves next                     step.go
//	6 complete  the completer   the slot becomes an event; moves retired        complete.go
//	7 deliver   the completer   into the place that stage 2 reserved            keep.go, internal/delivery
//
// A post that is refused in stages 1 to 3 has no effect. Behind them nothing can fail. The completer is the goroutine
// that the provider completes from; when the provider has nothing of a queue any more, it is the holder of the token.
//
// The long way is admit for stages 1 to 4, then submit. Most posts have one segment and meet nothing unusual. Those go
// the short way, which is the same by hand, for speed: PostPlain for one, and for several postRun and PostPieces
// (admit_run.go), whose posts one swap admits and one call hands over (run.go). What the short way does not take has
// changed nothing yet, and begins anew on the long way. No file but plain.go, admit.go and admit_run.go reserves places
// for posts.
//
// Why not simpler: a goroutine for each mailbox would cost its stack, and a switch for each message. With a mutex a
// poster would wait for another one's call of the device, and a completion that posts, for itself. A list of
// posts beside the slots would need memory that a slot has already.
//
// A completion gives its slot back in one of five places: CompleteOne, describe and passTo (complete.go; passTo is
// for suppressed successes, whose length only the slot has), deliver (keep.go) and describeShared (shared.go). Code
// that counts completions counts in all five.
//
// The files, from the ground up: one names what stands in its own row and in the rows above. What completes may hand on
// what waits, so the way there and the way back are one row.
//
//	words            state, operations, flags, rules, owner, errors, clock
//	types            mailbox, queue, crew, cold
//	parts            counted, handed, event, shared, work, post, own, check
//	there and back   token, step, complete, keep, unreported
//	ways in          admit, plain, run, admit_run, batch, bind, extension, read_to_rmr
//	the owner's      init, ends, resize, setrules, counts
//
// The package knows the queue pair, the places behind a dispatcher, and an [Owner]. It knows nothing of
// connections but the [Phase].
package line
