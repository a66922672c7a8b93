//go:build amd64 || arm64

package owner

// Goroutine identifies the calling goroutine: no other one that lives at the same
// time has the same value, and it is never 0. It costs a few instructions.
func Goroutine() uintptr
