// Package evd turns completions and connection changes into events, and delivers
// them to a program as [Mode] says: through a Go channel, in batches, to a caller that polls or
// waits, to a callback, or to a function. A [Dispatcher] is DAT's event dispatcher (EVD); it
// outlives the endpoints attached to it. A [Route] and a [OneShot] take single completions
// beside it, and a [CNO] waits for several dispatchers, also as a descriptor.
//
// # Reservation
//
// Each producer of an event reserves a place for it beforehand, at post time. So delivery
// never blocks and never fails, and no event is dropped: DAT's overflow can't happen.
// When the consumer is slow, the dispatcher fills and refuses posts. A dispatcher with the
// places that are counted below refuses none. Only a dispatcher with [Config.Overcommit] accepts
// posts beyond its room, and may lose events, as DAT says; and in [ModeFunc] events take no place.
//
// # Places
//
// An event has its place from the post or the connection call that reserves it
// until a consumer takes it. These are the places in use:
//
//   - a receive or a request: one, from its post until its event is taken. A
//     suppressed request has a place, too, which the endpoint frees after its success, at the
//     latest when a later request completes.
//   - a connection: two, from Connect or Accept on, for its outcome and its end.
//     The first is free again when the ESTABLISHED event is taken, the second when
//     the DISCONNECTED event is. An attempt that fails has one event, and both places
//     are free when that event is taken.
//   - a software event: one, until it is taken.
//
// A completion whose cookie matches a route has its place in the route, and the
// completion of a one-shot in the one-shot. Connection requests and asynchronous
// errors bring places of their own. So an endpoint needs n + 2 places, where n is the
// most receives and requests that the program has outstanding; each counts until the
// program has taken its event. With these places no post is refused.
//
// # Consumers
//
// An event has one consumer. These rules say which consumers a dispatcher may have:
//
//   - [Dispatcher.Dequeue] takes queued events. Any number of goroutines may call
//     it.
//   - [Dispatcher.Wait] is exclusive: while one goroutine waits, all others get
//     EVD_WAITER. An unwaitable dispatcher refuses Wait.
//   - Events trigger a [CNO] only while no goroutine is in Wait; the goroutine that takes
//     the trigger then calls Dequeue.
//   - All modes but ModeQueue are permanent waiters: with them Dequeue, Wait
//     and a CNO are refused with EVD_WAITER.
//
// # Silent events
//
// An event is silent when it does not wake a consumer by itself: the completion of an
// UNSIGNALLED operation, or of a receive on an endpoint with SOLICITED_WAIT whose
// sender did not ask for a notification. Errors and connection events are never
// silent. A silent event does not wake a waiter, but the waiter finds it when
// something else wakes it. A channel with an event in it is readable, so the dispatcher
// holds silent events for a channel back. It sends them, in order, right before the next
// event that notifies; it also sends them when as many are held as half of the dispatcher's
// length, when it would otherwise refuse a post, and on [Dispatcher.Flush].
//
// # Order
//
// Events that were delivered one after the other, by one goroutine or by several
// that synchronize, reach their destination in that order. There is no order
// between destinations: a dispatcher and its routes and one-shots.
package evd
