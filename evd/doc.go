// Package evd turns completions and connection changes into events, and hands
// them to whoever asked for them: through a Go channel, in batches, to a caller
// that polls or waits, or to a callback. A [Dispatcher] is DAT's event
// dispatcher (EVD); it outlives the endpoints attached to it.
//
// # Reservation
//
// Whatever may produce an event reserves a place for it first, at post time. So
// to deliver never blocks and never fails, nothing is dropped, and a slow
// consumer is felt by the poster, whose Reserve is refused: DAT's overflow can't
// happen. A program that makes its dispatchers as long as DAT tells it to, which
// is at least the sum of what may be outstanding, is never refused. Only a
// dispatcher that asks for it ([Config.Overcommit]) takes posts beyond its room,
// and may lose events, as DAT says.
//
// # Places
//
// An event has its place from when it is promised until a consumer takes it. So
// these are the places that are in use:
//
//   - a receive or a request: one, from its post until its event is taken. One that
//     is suppressed has it too, and after a success gives it back at the latest when
//     a request behind it has completed.
//   - a connection: two, from Connect or Accept on, for its outcome and its end. The
//     first is free again when the ESTABLISHED event is taken, the second when the
//     DISCONNECTED event is. If there will be no second event, the outcome is the only
//     one, and its place is free when it is taken.
//   - a software event: one, until it is taken.
//
// Completions whose cookie matches a route have their places there, and those of a
// one-shot in it. Connection requests and asynchronous errors bring places of their
// own. So a program that has at most so many receives and requests of an endpoint
// outstanding, and counts one as outstanding until it has taken its event, needs
// that many places and two more for each endpoint, and is never refused.
//
// # Consumers
//
// An event has one consumer, and one rule says which may be there:
//
//   - [Dispatcher.Dequeue] takes what is queued. Any number of goroutines may.
//   - [Dispatcher.Wait] is exclusive: while somebody waits, all others get
//     EVD_WAITER. An unwaitable dispatcher has no waiter.
//   - A [CNO] comes after a waiter: it is told of events while nobody waits, and
//     whoever it tells dequeues.
//   - Channel, batches and callback are permanent waiters: there Dequeue, Wait and
//     a CNO are refused with EVD_WAITER.
//
// # Silent events
//
// An event is silent when it does not by itself notify: the completion of an
// UNSIGNALLED operation, or a receive that nobody marked as solicited on an
// endpoint with SOLICITED_WAIT. Errors and connection events are never silent.
// A waiter is not woken by a silent event, but finds it there once something
// else wakes it. A channel can't have something in it and not be readable, so
// there silent events are held back, in order, until the next one that
// notifies, which they precede; they also go out when half the limit is held,
// when a reservation would be refused, and on [Dispatcher.Flush]. So in both
// cases the meaning of silent is: does not by itself make the consumer run.
//
// # Order
//
// Events that were put one after the other, by one goroutine or by several that
// synchronize, reach their destination in that order. There is no order between
// destinations.
package evd
