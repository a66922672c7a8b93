// Package line has the way of a post, from the call that makes it to the event that ends it. A [Mailbox] has two
// [Queue]s, of requests and of receives. Each is a ring of slots, and a post's number, its ticket, says its slot:
//
//	retired ≤ next ≤ tail ≤ retired + depth
//
// Seven stages move a post on. Each has one writer, and none holds a lock while it calls the device:
//
//	1 check     the poster      against a snapshot of rules and state           check.go
//	2 reserve   the poster      a place for the event, where it will go         admit.go
//	3 ticket    the poster      one swap moves tail, and takes a free token     token.go
//	4 fill      the poster      the slot that the ticket says                   admit.go
//	5 hand      the holder      to the provider; moves next                     step.go
//	6 complete  the completer   the slot becomes an event; moves retired        complete.go; keep.go of several
//	7 deliver   the completer   into the place that stage 2 reserved            the same, internal/delivery
//
// A post that is refused in stages 1 to 3 has no effect. Behind them no post gets an error: if the provider refuses one,
// the connection ends, and the post is flushed. The completer is the goroutine that the provider completes from; the
// holder of the token is it while the detour ends, while the queue grows, and when the provider has nothing of the
// queue any more.
//
// The long way is admit for stages 1 to 4, then submit. Most posts have one segment and meet nothing unusual. Those go
// the short way, which has stages 1 to 5 in one function, for speed: PostPlain for one, and for several postRun and PostPieces
// (admit_run.go), whose posts one swap admits and one call hands over (run.go). What the short way does not take has
// changed nothing yet, and begins anew on the long way. No file but plain.go, admit.go and admit_run.go reserves places
// for posts.
//
// Why not simpler: a goroutine for each mailbox would cost its stack, and a switch for each message. With a mutex a
// poster would wait while another one calls the device, and a completion that posts would wait for itself. A list of
// posts beside the slots would need memory that a slot has already. Locks are left to what is rare: the first post of
// a queue, a tail that wraps, the detour, and a prompt receive that waits.
//
// Completions are counted in CompleteOne, describe and passTo (complete.go; passTo is for suppressed successes, whose
// length only the slot has), keepOther and deliver (keep.go), and describeShared (shared.go).
//
// The files, from the ground up: a file uses names of its own row and of rows above. Completing may hand on posts that
// wait, so both directions share a row.
//
//	words            state, operations, flags, rules, owner, errors, clock
//	types            mailbox, queue, crew, cold
//	parts            counted, handed, event, shared, work, post, own, check
//	there and back   token, step, complete, keep, unreported
//	ways in          admit, plain, run, admit_run, batch, bind, extension, read_to_rmr
//	the owner's      init, ends, resize, setrules, counts
//
// The package knows the queue pair, the places behind a dispatcher, and an [Owner]. Of a connection's state it knows
// the [Phase].
package line
