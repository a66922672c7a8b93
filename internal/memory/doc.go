// Package memory is what an endpoint needs of registered memory beyond what a
// program calls: a zone checks the segments of posts, and binds change a window.
//
// The objects of package mem stand in front: a PZ has a [Zone], an RMR a [Window].
// Package ep gets both from methods of PZ and RMR that take a
// [godat/internal/door.Key].
package memory
