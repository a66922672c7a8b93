//go:build !linux

package mem

// memlock reports no limit on this system.
func memlock() (limit uint64, ok bool) { return 0, false }
