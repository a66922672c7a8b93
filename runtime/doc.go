// Package runtime is what a program imports, as dat:
//
//	import dat "godat/runtime"
//
// [Open] opens an interface adapter ([IA]) by the name of its provider. The
// adapter makes everything that lives on it: protection zones and their memory
// regions, event dispatchers and CNOs, endpoints and service points; and it closes them.
// The types, flags and errors of the packages below are declared here again, so
// that a first program needs one import.
//
// Beside what its objects do themselves, an adapter runs little: on a device
// whose completion queues must be polled, one pinned thread, and one goroutine
// for each dispatcher that such completions go to; for dispatchers with a
// callback, the tasks of a pool. Close ends all of it.
package runtime
