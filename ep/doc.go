// Package ep has the ends that communicate: endpoints, the service points that
// listen for connection requests, and the requests themselves.
//
// Every post that returned nil completes exactly once: as an event on the dispatcher, route or
// one-shot that it names, or silently if it was suppressed and succeeded.
//
// An endpoint's protection zone and dispatchers outlive it: they refuse to close
// while it lives. All methods may be called from any goroutine.
//
// # How it works
//
// An [Endpoint] is an actor without a goroutine. Its slot rings are its mailbox; one word of 64 bits,
// the token, says whether some goroutine runs its step. A poster that finds the token free takes it
// and runs the step. Else it kicks the holder, which looks again before it releases the token (see
// package token). A poster that has handled its share of posts leaves the token to a worker of the
// adapter. Package line has the mailbox, and the stages of a post.
//
// Only the step changes an endpoint's state, by an input: a call of a program, a fact that a
// provider reports or a post that it refuses, an alarm. Package life says what each does in each state;
// machine.go does that. A new endpoint gets its first state in make.go.
package ep
