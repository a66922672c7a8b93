//go:build !linux && !darwin

package iwarp

import "errors"

const haveRaw = false

// mayAccept reports whether a connection may wait at a listening socket.
func mayAccept(int) bool { return true }

// portState is empty: every connection is staged.
type portState struct{}

type vector struct{}

var errNoRaw = errors.New("iwarp: no raw connections on this system")

func (*port) bind() {}

func (*port) call(func(fd uintptr)) error { return errNoRaw }

func (*port) write(*outbox) (int, error) { return 0, errNoRaw }

func (*port) await() error { return errNoRaw }

func readInto(int, []byte) (n int, again bool, err error) { return 0, false, errNoRaw }

func readVector(int, *vector, [][]byte) (n int, again bool, err error) { return 0, false, errNoRaw }
