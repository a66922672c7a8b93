// Package door lets this module's packages, and nobody else, past the public face of an object of package evd or
// mem to the implementation behind it.
//
// Each such object has one exported method that takes a [Key] and returns what is behind. A program can see the
// method, but it can't write a Key: no package outside this module may import this one.
package door

// Key opens a door. Its zero value is a key; what makes it a key is that only this module can name it.
type Key struct{ _ [0]func() }
