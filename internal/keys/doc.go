// Package keys maps 32-bit keys to values, for lookups on the data path.
//
// A key is what a work request or a peer names a memory region by: an index in
// the upper 24 bits, a generation in the lower 8. It looks up in a few loads
// without a lock, and a key that was removed stays dead: its index rests, and
// comes back with another generation. A table that keeps its values in a way of its
// own has its keys from [Indexes].
package keys
