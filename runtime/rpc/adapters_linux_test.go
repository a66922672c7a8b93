//go:build !guest

package rpc

import "syscall"

// mappings are those that a source may have when it is mapped for reading alone.
var mappings = map[string]int{"private": syscall.MAP_PRIVATE, "shared": syscall.MAP_SHARED}
