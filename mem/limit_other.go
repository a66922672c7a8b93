//go:build !linux

package mem

// memlock knows of no limit here.
func memlock() (limit uint64, ok bool) { return 0, false }
