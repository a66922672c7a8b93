// Package store keeps blocks in one file, a bbolt database.
//
// A block is found by its ID and lies at a number that only grows:
//
//	index  ID → number     small, in the order of the IDs
//	data   number → bytes  large, appended to
//	meta   "root" → ID
//
// With the blocks in the order of their IDs instead, each new one would make
// bbolt write its neighbors again.
//
// The IDs are trusted to be those of the blocks: who reads a block checks it.
package store
