//go:build !linux

package evd

import "testing"

func readable(testing.TB, uintptr) bool { return false }
func descriptorPath(uintptr) string     { return "" }
