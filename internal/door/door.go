// Package door lets the packages of this module, and no others, call some exported functions
// and methods of hw/event, evd, mem and ep: those that take a [Key].
//
// Some of them return the implementation behind an object, others do what is not for
// programs. A program can see such a method, but it can't make a Key, because no
// package outside this module may import this one.
package door

// Key is an argument of such a function or method. Its zero value is a key: only this module
// can name the type.
type Key struct{ _ [0]func() }
