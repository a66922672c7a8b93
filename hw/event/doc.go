// Package event has the words for what happened: an [Event], its [Number], and the
// [Streams] that dispatchers take. Package evd delivers events; package
// godat/runtime has these words for programs.
package event
