// Package keys maps 32-bit keys to values, for lookups on the data path.
//
// A key is what a work request or a peer names a memory region by. A lookup is a
// few loads without a lock, and a key that was removed stays dead. [Table] keeps
// the values itself; a table with entries of its own kind finds them by [Slots].
//
// # What a key tells a peer
//
// Nothing about any other key. A key is drawn at random: every number but the
// [Smallest] lowest is as likely, and one is drawn again only when it is in use or
// rests. The draw is ChaCha8's, under a seed that each table gets from the system.
// So whatever keys of a table a peer has seen, at any time and in any order, all
// that it knows of a live one that it has not seen is that it is none of those: it
// can't tell zones, devices or neighbors apart, nor old keys from new.
//
// One try therefore hits one of L live keys with a chance of L in 2³², less what
// is excluded, which is as good as nothing: 256 small numbers, the keys seen, and
// the last [Rest] that were removed. A try that misses ends the connection that it
// came by, on loop and on iwarp, so a stranger who wants into one region has to
// connect two thousand million times on average.
//
// A key that was removed rests while the next [Rest] are removed, and is not given
// out meanwhile; afterwards each draw brings it back with a chance of 1 in 2³².
//
// No bit of a key means anything. The low eight of an STag, which RFC 5040 has the
// consumer choose where it can, are drawn like the others; a peer takes all 32 as
// they are.
//
// # Why keys are not indexes in disguise
//
// A keyed permutation of an index and a generation hides them only as well as its
// cipher is hard to break, for which 32 bits are few and a lookup has little time;
// and it brings each key back for certain, after as many uses of its index as there
// are generations. A number that means nothing has nothing to break. Its price is
// that keys meet in the array that their low bits index. It is kept at least half
// empty, so the first place that a lookup looks at is nearly always the right one.
// That keys may meet is part of the argument: if the draw avoided places that are
// taken, a peer that saw enough keys come and go would know the low bits of the one
// that was there all the time.
package keys
