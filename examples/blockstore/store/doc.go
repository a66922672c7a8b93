// Package store keeps blocks in one file, a bbolt database.
//
// The index has a number for each block's ID, and the block is stored under that
// number. Numbers only grow:
//
//	index  ID → number     small, in the order of the IDs
//	data   number → bytes  large, appended to
//	meta   "root" → ID
//
// If the blocks were stored in the order of their IDs instead, bbolt would write the
// neighbors of each new block again.
//
// The store does not check that a block has its ID: the reader of a block checks it.
package store
