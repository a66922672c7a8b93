// Package event has the types of events: an [Event], its [Number], and the
// [Streams] that dispatchers take. Package evd delivers events.
// Programs import this package for their types and numbers.
package event
