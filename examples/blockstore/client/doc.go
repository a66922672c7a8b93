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
// A request has ended when its reply is there, and its block has been written or
// read: an answer says nothing of the completion of the write before it. Only then is
// its memory used again. The buffer of the reply is that of the slot's next request.
package client
