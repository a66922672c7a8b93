//go:build unix

package main

import (
	"os"
	"syscall"
)

// operatorSignals are the signals that an operator minds.
var operatorSignals = []os.Signal{syscall.SIGHUP, syscall.SIGUSR1}
