// Package door lets the packages of this module, and no others, reach the
// implementation behind an object of package evd or mem.
//
// Each such object has one exported method that takes a [Key] and returns its
// implementation. A program can see the method, but it can't make a Key, because no
// package outside this module may import this one.
package door

// Key is the argument of such a method. Its zero value is a key: only this module
// can name the type.
type Key struct{ _ [0]func() }
