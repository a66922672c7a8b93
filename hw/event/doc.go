// Package event has the types of events: an [Event], its [Number], and the
// [Streams] that dispatchers take. Package evd delivers events; package
// godat/runtime gives programs these names.
package event
