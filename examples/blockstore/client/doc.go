// Package client moves blocks to and from a block store's server.
//
// A [Link] is one connection and belongs to one goroutine. It has a slot for each slot
// of its window, with a block of registered memory, and requests use the slots in turn.
// At most as many requests as slots are outstanding, and they end in the order in which
// they began:
//
//	          oldest                    next
//	            ▼                        ▼
//	┌─────┬─────┬─────┬─────┬─────┬─────┬─────┐
//	│ free│ on their way ........... │ free... │
//	└─────┴─────┴─────┴─────┴─────┴─────┴─────┘
//
// A request has ended when its reply has come and its block has been written or read:
// the reply does not tell that the RDMA write before it has completed. Only then is the
// slot's memory used again. The slot's next request goes out in the buffer of the
// reply.
package client
