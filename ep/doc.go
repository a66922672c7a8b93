// Package ep has the communicating ends: endpoints, the service points that
// listen for connection requests, and the requests themselves.
//
// An [Endpoint] is an actor without a thread of its own most of the time. Its
// slot rings are its mailbox; a word, the token, says whether somebody runs its
// step. A poster that finds the token free takes it and runs the step inline; a
// poster that finds it taken leaves a mark and goes, and the holder looks again
// before it lets go. See token.go for the protocol and why it holds.
//
// Whatever may change an endpoint's state is an input to its step: the calls of
// a program, the facts that a provider reports, a timer. One table says what
// each input does in each state (state.go), one method assigns the state.
//
// Every post that returned nil completes exactly once: as an event on the
// dispatcher, route or one-shot that its cookie chose, or silently when it was
// suppressed and succeeded.
//
// An endpoint outlives neither its protection zone nor its dispatchers: they
// refuse to close while it lives. All methods may be called from any goroutine.
package ep
