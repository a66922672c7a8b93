// Package memory is what an endpoint needs of registered memory beyond what a program calls: a zone checks the
// segments of posts, and a window is bound by them.
//
// The objects of package mem stand in front: a PZ has a [Zone], an RMR a [Window]. Package ep reaches both by the
// methods of theirs that take a [godat/internal/door.Key].
package memory
