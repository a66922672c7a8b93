//go:build unix && !linux

package mem

import "golang.org/x/sys/unix"

func mapHuge(int, bool) ([]byte, error) { return nil, unix.ENOTSUP }

func advise([]byte, bool) {}

func discard([]byte) {}
