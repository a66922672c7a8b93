// Package life says what becomes of a connection: from a state, an input and a [Life] it makes the next state and its
// [Effects]. The Life remembers the places for events, the outcome, and whether the end is announced. The package holds
// no endpoint and no queue pair, reads no clock, and waits for nothing.
// Package ep does what the effects say, so a test reads all that life decides, without an endpoint or a queue pair.
//
//	state.go    the states, and why a call is refused in one
//	input.go    what may happen, and the table of what it does in each state
//	life.go     what else a move brings along: events, an alarm, what to do with the queue pair
//	outcome.go  which event ends a connection, and what its cause is
//	alarm.go    how long a peer has
//
// An endpoint lives in one of these orders, unless something goes wrong. Only a graceful Disconnect of this end leads by
// DISCONNECT_PENDING:
//
//	who connects   UNCONNECTED → ACTIVE_CONNECTION_PENDING → CONNECTED → (DISCONNECT_PENDING →) DISCONNECTED
//	who accepts    UNCONNECTED, RESERVED → PASSIVE_CONNECTION_PENDING, or PASSIVE_CONNECTION_PENDING at once
//	               → COMPLETION_PENDING → CONNECTED → (DISCONNECT_PENDING →) DISCONNECTED
//
// testdata has lives of connections, as inputs and what is answered.
package life
