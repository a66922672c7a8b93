// Package proto is what clients and server of the block store say to each
// other, byte by byte. Numbers are big endian.
//
// A connection has a window of slots in the server's memory. The client moves
// a block into or out of a slot by RDMA, and says what it wants in a control
// message of 64 bytes:
//
//	store  client writes the block into the slot, sends PUT;
//	       server keeps the block, sends the reply when it is on disk
//	fetch  client sends GET; server fills the slot, sends the reply;
//	       client reads the slot
//
// Of each slot at most one request is on its way, so a window is a limit on
// both sides, and the number of receives to post. Replies come in the order of
// the requests.
//
// # Connecting
//
// The connection request carries a [Hello] as its private data, the accept or
// the reject a [Welcome].
//
// # Trust
//
// Everything that is parsed here comes from a peer. Bytes that are reserved
// must be zero, and what a parser returns without an error is within the
// limits that the connection has agreed on.
package proto
