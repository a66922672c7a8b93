// Package delivery is what is behind the dispatchers of package evd: the queues that
// endpoints reserve places in and put events into, and the ways in which events leave
// them. Package evd shows programs what they may call; its documentation says what
// reservations, places and silent events are.
//
// A [Dispatcher] has one main [Queue], and one for each [Route] and [OneShot]. The parts of a Queue, of which its
// [Way] says where events go:
//
//	places    the counts of places, of every queue
//	Consumer  Ring: Dequeue, Wait, iterators and the CNO. The turn says which
//	          goroutine consumes, the notice whether one is to be woken
//	rings     a ring, and the shorter ones that it replaced
//	channel   Channel: the channel, and the silent events held before it
//	Sink      every other way: Batches, Callback, Func, a OneShot, a route to a function, and what
//	          stands in front of a queue that may be full
//
// A Queue knows the ring and the channel by their types, because most completions go there; all
// other ways it knows as a [Sink]. A further way is a file here with a Way, and a line in
// evd's table of modes. What only wakes a consumer of a ring needs no way: see evd.CNO.
//
// Beside its queue a dispatcher has the [Feeds], which are the objects attached to it;
// the events that bring places of their own (asyncList); its routes; and its length, which
// Resize changes. Each of these types guards its own fields.
package delivery

import "godat/internal/owner"

// assertions are on in builds with the race detector.
const assertions = owner.Enabled
