//go:build linux || darwin

package iwarp

import (
	"io"

	"golang.org/x/sys/unix"

	"godat/internal/owner"
)

const haveRaw = true

// portState is the state of the callbacks of a raw connection. The token's holder owns
// it; the writer calls await, which does not use it.
type portState struct {
	writeFn func(fd uintptr)
	checkFn func(fd uintptr)
	awaitFn func(fd uintptr) bool
	out     *outbox
	wn      int
	werr    error
}

// bind makes the callbacks once, because a method value allocates.
func (p *port) bind() {
	p.writeFn, p.checkFn, p.awaitFn = p.doWrite, p.doCheck, p.doAwait
}

// call calls f with the descriptor. The caller holds the token, of a connection that is not
// broken, or the right to read. The connection is closed by the writer's last job, which begins
// when the connection is broken, and waits until the receiver has left with the right. So the
// descriptor stays valid during the call. If others may close the connection, RawConn sees to
// that, at a price.
func (p *port) call(f func(fd uintptr)) error {
	if !p.owned {
		return p.raw.Control(f)
	}
	if owner.Enabled && p.raw.Control(p.checkFn) != nil {
		panic("iwarp: a connection was closed while it was in use")
	}
	f(p.fd)
	return nil
}

// doCheck asserts that the descriptor is the connection's.
func (p *port) doCheck(fd uintptr) {
	if fd != p.fd {
		panic("iwarp: a connection has another descriptor")
	}
}

// write writes as much of the outbox as the socket takes without waiting. It needs neither
// the lock nor the deadline of a net.Conn's Write: the token's holder alone writes.
func (p *port) write(o *outbox) (int, error) {
	p.out = o
	if err := p.call(p.writeFn); err != nil {
		return 0, err
	}
	return p.wn, p.werr
}

func (p *port) doWrite(fd uintptr) {
	for {
		p.wn, p.werr = p.out.writev(int(fd))
		if p.werr == unix.EINTR {
			continue
		}
		break
	}
	if p.werr == unix.EAGAIN {
		p.wn, p.werr = 0, nil
	}
	p.wn = max(p.wn, 0)
}

// await waits until the socket takes more.
func (p *port) await() error { return p.raw.Write(p.awaitFn) }

// doAwait polls the socket itself, because Go's poller does not report again what it has
// reported before.
func (p *port) doAwait(fd uintptr) bool { return mayBeReady(int(fd), unix.POLLOUT) }

// mayAccept reports whether a connection waits at a listening socket, or may.
func mayAccept(fd int) bool { return mayBeReady(fd, unix.POLLIN) }

// mayBeReady reports whether a poll of the socket finds the event, or fails.
func mayBeReady(fd int, event int16) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: event}}
	n, err := unix.Poll(fds[:], 0)
	return n > 0 || err != nil && err != unix.EINTR
}

// readInto reads without waiting; again means that nothing has come yet.
func readInto(fd int, b []byte) (n int, again bool, err error) {
	for {
		n, err = readNow(fd, b)
		if err != unix.EINTR {
			return wasRead(n, err)
		}
	}
}

// readVector is readInto for several slices.
func readVector(fd int, v *vector, parts [][]byte) (n int, again bool, err error) {
	for {
		n, err = v.readv(fd, parts)
		if err != unix.EINTR {
			return wasRead(n, err)
		}
	}
}

// wasRead is what a call of the system has read.
func wasRead(n int, err error) (got int, again bool, failed error) {
	switch {
	case err == unix.EAGAIN:
		return 0, true, nil
	case err != nil:
		return 0, false, err
	case n == 0:
		return 0, false, io.EOF
	}
	return n, false, nil
}

// writev tries to write all octets of the outbox that are not written.
func (o *outbox) writev(fd int) (int, error) {
	parts := o.parts[:0]
	skip := o.skip
	for k := o.first; k < len(o.pieces) && len(parts) < cap(parts); k++ {
		parts = append(parts, o.pieces[k].mem[skip:])
		skip = 0
	}
	n, err := o.vec.writev(fd, parts)
	clear(parts) // a pooled buffer keeps no memory of a program alive
	return n, err
}
