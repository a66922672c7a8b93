// Package client moves blocks to and from a block store's server.
//
// A [Link] is one connection and belongs to one goroutine. It has as many slots
// as its window; each slot is a block of registered memory, and requests go
// round them. So many requests are on their way at a time, and they end in the
// order in which they began:
//
//	          oldest                    next
//	            ▼                        ▼
//	┌─────┬─────┬─────┬─────┬─────┬─────┬─────┐
//	│ free│ on their way ........... │ free... │
//	└─────┴─────┴─────┴─────┴─────┴─────┴─────┘
//
// A request has ended when everything posted for it has completed: the send,
// the receive of the reply, and for a GET the RDMA read. Only then is its
// memory used again.
package client
