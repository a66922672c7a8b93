//go:build !linux

package guest

import (
	"errors"
	"os"
	"syscall"
)

func tryLock(string, bool) (*os.File, error) {
	return nil, errors.New("guest: a guest needs Linux as its host")
}

func tied() *syscall.SysProcAttr { return nil }
