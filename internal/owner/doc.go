// Package owner asserts who owns a piece of state.
//
// A [Tag] lies beside the fields that one goroutine at a time may touch. A
// goroutine calls Acquire when it takes the fields and Release when it gives them
// up, and every method that may run only in between begins with Check. In a program
// built with the race detector a wrong call panics and names the goroutine; in any
// other build a Tag has no size and its methods vanish.
package owner
