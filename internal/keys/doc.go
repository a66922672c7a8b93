// Package keys maps 32-bit keys to values, for lookups on the data path.
//
// A work request or a peer names a memory region by a key. A lookup is a few loads
// without a lock, and a key that was removed stays dead. [Table] keeps the values
// itself; a table with entries of its own kind finds them by [Slots].
//
// # What a key tells a peer
//
// Nothing about any other key. Every number but the [Smallest] lowest is as likely as any
// other, and the table draws again only when the number is in use or rests. The generator
// is ChaCha8, under a seed that each table gets from the system. So of a live key that it
// has not seen a peer knows only that it is none of those that it has: it can't tell zones,
// devices or neighbors apart, nor old keys from new.
//
// One guess hits one of L live keys with a chance of L in 2³²; the numbers that can't be
// live keys hardly change that. A guess that misses ends the connection that it came by, on
// loop and on iwarp, so a stranger that wants to reach one region has to connect two
// thousand million times on average.
//
// A key that was removed rests while the next [Rest] are removed, and is not drawn
// meanwhile; afterwards each draw brings it back with a chance of 1 in 2³².
//
// No bit of a key means anything. The low eight of an STag, which RFC 5040 lets the
// consumer choose where it can, are drawn like the others; a peer takes all 32 as
// they are.
//
// # Why keys are not indexes in disguise
//
// A keyed permutation of an index and a generation hides them only as well as its cipher is
// hard to break, with 32 bits and the little time of a lookup. It also brings each key back
// for certain, after as many uses of its index as there are generations. The price of random
// numbers is that the low bits of several keys name the same place of the array, which is
// kept at least half empty, so the first place that a lookup looks at is nearly always the
// right one. The draw doesn't avoid places that are taken: a peer that saw enough keys come
// and go would know the low bits of a key that was there all the time.
package keys
