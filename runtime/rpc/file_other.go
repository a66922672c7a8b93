//go:build !linux

package rpc

import (
	"errors"
	"os"
)

// mapFile maps no file on this system.
func mapFile(*os.File, int64, int, bool) (memory []byte, unmap func(), err error) {
	return nil, nil, errors.ErrUnsupported
}
