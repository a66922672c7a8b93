// Package delivery is what is behind the dispatchers of package evd: the queues that
// endpoints reserve places in and put events into, and the ways in which events leave
// them. Package evd shows programs what they may call; its documentation says what
// reservations, places and silent events are.
//
// A [Dispatcher] has one main [Queue], and one for each [Route] and [OneShot]. A Queue
// chooses by its [Kind] where an event goes:
//
//	places    the counts of places, of every queue
//	rings     KindRing, KindCallback: a ring, and the shorter ones that it replaced
//	Consumer  KindRing: Dequeue, Wait, iterators and the CNO. The turn says which
//	          goroutine consumes, the notice whether one is to be woken
//	upcalls   KindCallback: the task that calls back
//	channel   KindChannel: the channel, and the silent events held before it
//	batcher   KindBatch
//	filter    kindSink: the events go no further
//
// Beside its queue a dispatcher has the [Feeds], which are the objects attached to it;
// the events that bring places of their own (asyncList); its routes; and its length, which
// Resize changes. Each of these types guards its own fields.
package delivery

import "godat/internal/owner"

// assertions are on in builds with the race detector.
const assertions = owner.Enabled
