// Package yield widens, for tests, the windows in which a concurrency protocol may
// go wrong.
//
// Such a window is a few instructions wide, and a test may not hit it in a million
// rounds. A [Point] stands in each window that the protocols name. Under the race
// detector, and in programs for wasip1, a Point lets other goroutines run from time to time; in any other build
// it does nothing. [Interleave] visits a protocol's points one after the other, and
// leaves nothing to chance.
package yield
