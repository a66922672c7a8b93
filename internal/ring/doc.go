// Package ring has the bounded rings that carry values between goroutines
// without a lock.
//
//   - [SPSC]: one producer, one consumer; from a pinned poller to a deliverer.
//   - [Reserved]: many producers, one consumer, and an owner that counts the places, so that
//     putting can neither fail nor wait; a dispatcher's queue.
//
// A producer publishes a batch with one store, however long the batch is. A
// consumer never writes a cell, so it does not take the cell's cache line away from
// the producers, and it gives places back in batches. The price is that a cell
// keeps its value, and what the value points to, until the ring comes round to the
// cell again.
//
// No method blocks, allocates or runs code of its caller.
package ring
