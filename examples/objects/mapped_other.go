//go:build !linux

package main

import (
	"fmt"
	"os"

	dat "godat/runtime"
)

var errLinux = fmt.Errorf("objects maps files on Linux only: %w", os.ErrInvalid)

func mapped(*dat.PZ, *os.File, int64, int, dat.Privileges, func(m *dat.LMR, at int) error) error {
	return errLinux
}

func allocate(*os.File, int) error { return errLinux }

func syncDir(string) error { return errLinux }
