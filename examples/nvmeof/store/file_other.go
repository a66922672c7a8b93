//go:build !linux

package store

import (
	"errors"
	"fmt"
)

// OpenShared maps a file that several stores have, on Linux.
func OpenShared(path string, size int) (Store, error) { return OpenFile(path, size) }

// OpenStaged reads a file into memory, on Linux.
func OpenStaged(path string, _ int) (Staged, error) {
	return nil, fmt.Errorf("store: %s: %w: files are opened on Linux only", path, errors.ErrUnsupported)
}

// OpenFile maps a file or a block device, on Linux.
func OpenFile(path string, _ int) (Store, error) {
	return nil, fmt.Errorf("store: %s: %w: files are mapped on Linux only", path, errors.ErrUnsupported)
}
