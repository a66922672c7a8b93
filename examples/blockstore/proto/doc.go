// Package proto is the protocol between clients and server of the block store. Numbers
// are big endian.
//
// A connection has a window of slots in the server's memory. The client moves a block
// into or out of a slot by RDMA, and sends its request in a control message of 64
// bytes:
//
//	store  client writes the block into the slot, sends PUT;
//	       server keeps the block, sends the reply when it is on disk
//	fetch  client sends GET; server fills the slot, sends the reply;
//	       client reads the slot
//
// Each slot has at most one request outstanding, so the window bounds the requests on
// both sides, and so the receives to post. Replies come in the order of the requests.
//
// # Connecting
//
// The connection request carries a [Hello] as its private data, the accept or
// the reject a [Welcome].
//
// # Trust
//
// Everything that is parsed here comes from a peer. Reserved bytes must be zero. What a
// parser returns without an error is within the limits that the two sides agreed on.
package proto
