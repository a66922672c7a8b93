// Package token has the right to work on something that many goroutines leave work
// for: an endpoint's mailbox, a pipe of loop, an iwarp connection's sender. No
// goroutine waits for a [Token]. A goroutine that finds it free takes it and does the
// work itself; one that finds it held leaves its work to the holder.
//
// # The protocol
//
// Its model is check/models/token.pml.
//
// A token is one word: the flags Held and Kicked, and bits of the user's own, which
// any goroutine may change in the same swap.
//
//	free ──take──▸ Held ──kick──▸ Held|Kicked
//	     ◂─release─     ◂─clear──
//
// The transitions are:
//   - take: free → Held, by TryTake, TakeOrKick or Swap.
//   - kick: Held → Held|Kicked, by TakeOrKick of a goroutine that is not the holder.
//     A second kick changes nothing.
//   - release: Held → free, by Release or ReleaseIf of the holder. If the word is
//     Held|Kicked, Release clears Kicked and fails: the holder looks for work again.
//   - hand over: the holder calls Leave and puts the token in a list. The word stays
//     Held. The goroutine that takes the token from the list calls Resume.
//
// The rule for its users is: a goroutine first publishes its work by an atomic store,
// and then calls TakeOrKick. It may try Swap or TryTake first; if that fails, it calls
// TakeOrKick. A holder looks for work after it took the token, unless it ends by a ReleaseIf
// that succeeds, and again after each Release or ReleaseIf that failed.
//
// # Why there is one holder
//
// Held is set in a free word by a swap, which one goroutine wins. Only the holder
// clears it: Release and ReleaseIf are the holder's, Swap keeps it, and the other
// operations don't touch it. What a holder did comes before the swap that releases the
// token, and so before all that the next holder does.
//
// # Why no work is lost
//
// A goroutine publishes its work before its last operation on the word, and all
// operations on the word have one order. In that order its operation is one of these:
//
//   - It took the token. The goroutine is the holder, and looks for work after that.
//   - It set Kicked. The word can't become free while Kicked is set: ReleaseIf fails
//     because the word has changed, and Release finds Kicked, or its swap fails and it
//     loads the word again. So the holder clears Kicked, which comes later in the order,
//     and then looks for work.
//   - It loaded a word with Kicked set. The holder clears that Kicked later in the
//     order, and then looks for work, as before.
//
// The holder clears Kicked by an operation that leaves the other bits alone, and before
// it looks. If it looked first, it would clear a kick whose work came after the look.
//
// ReleaseIf needs no look for work: the word that it compares with is the one that the
// holder stored when it took the token, so no other goroutine has kicked it since. The
// holder does its own work, and there is no other: before the word became free, a
// holder saw all that was left until then.
//
// # What is no token
//
// A right is a lock, and needs no kick, if goroutines wait for it, or if its holder owes
// nothing to one that did not get it. Iwarp's right to read a socket is a mutex, which
// consumers only try to lock: the network poller wakes the receiver for what no consumer
// reads. The right to drive a polled device is a flag: the device wakes the back-stop for
// completions that nobody polled.
package token
