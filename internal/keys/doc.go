// Package keys maps 32-bit keys to values, for lookups on the data path.
//
// A work request or a peer names a memory region by a key. A lookup is a few loads
// without a lock, and a key that was removed stays dead. [Table] keeps the values
// itself; a table with entries of its own kind finds them by [Slots].
//
// # What a key tells a peer
//
// Nothing about any other key. A key is drawn at random: every number but the
// [Smallest] lowest is as likely as any other, and the table draws again only when
// the number is in use or rests. The generator is ChaCha8, under a seed that each
// table gets from the system. So whatever keys of a table a peer has seen, at any
// time and in any order, all that it knows of a live key that it has not seen is
// that it is none of those: the peer can't tell zones, devices or neighbors apart,
// nor old keys from new.
//
// One guess therefore hits one of L live keys with a chance of L in 2³². The
// numbers that can't be live keys hardly change that: 256 small numbers, the keys
// that the peer has seen, and the last [Rest] that were removed. A guess that
// misses ends the connection that it came by, on loop and on iwarp, so a stranger
// that wants to reach one region has to connect two thousand million times on
// average.
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
// A keyed permutation of an index and a generation hides them only as well as its
// cipher is hard to break. For a cipher 32 bits are few, and a lookup has little
// time. The permutation also brings each key back for certain, after as many uses
// of its index as there are generations. A random number has no meaning that a peer
// could find out. Its price is that keys may meet: the low bits of several name the
// same place of the array. The array is kept at least half empty, so the first
// place that a lookup looks at is nearly always the right one. That keys may meet
// is part of the argument: if the draw avoided places that are taken, a peer that
// saw enough keys come and go would know the low bits of a key that was there all
// the time.
package keys
