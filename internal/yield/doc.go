// Package yield opens the windows of the concurrency protocols.
//
// A protocol is wrong in a window a few instructions wide, which a test may not
// hit in a million rounds. A [Point] stands in each window that the protocols
// name. Under the race detector it now and then lets other goroutines run right
// there; in any other build it is nothing. [Interleave] visits a protocol's points
// one after the other, and leaves nothing to chance.
package yield
