// Package life says what becomes of a connection. It is a function: a state and an input go in, the next state and
// its [Effects] come out. It holds no endpoint and no queue pair, reads no clock, and waits for nothing.
// Package ep does what the effects say, so a test reads all that life decides, without an endpoint or a queue pair.
//
//	state.go    the states, and why a call is refused in one
//	input.go    what may happen, and the table of what it does in each state
//	life.go     what else a move brings along: events, an alarm, what to do with the queue pair
//	outcome.go  which event ends a connection, and what its cause is
//	alarm.go    how long a peer has
//
// An endpoint lives in this order, unless something goes wrong:
//
//	UNCONNECTED → ACTIVE_CONNECTION_PENDING or COMPLETION_PENDING → CONNECTED → DISCONNECT_PENDING → DISCONNECTED
//
// testdata has lives of connections, as inputs and what is answered.
package life
