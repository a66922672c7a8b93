package iwarp

import (
	"io"
	"runtime"
	"time"
)

// fill reads what is there, at least one octet.
func (l *life) fill() error {
	x := &l.rx
	if l.port.staged {
		return l.fillStaged()
	}
	x.in.release()
	x.err = nil
	if err := l.port.raw.Read(x.fillFn); err != nil {
		return err
	}
	return x.err
}

// fillStaged is fill for a connection that can't say whether it has something: the
// receiver waits with a small buffer while it has none of an FPDU.
func (l *life) fillStaged() error {
	x := &l.rx
	l.hurry()
	x.in.release()
	var n int
	var err error
	if x.in.buf == nil {
		if n, err = l.conn.Read(x.first[:]); n > 0 {
			x.in.ready(x.need)
			x.in.w = copy(x.in.buf[:], x.first[:n])
		}
	} else {
		x.in.ready(x.need)
		n, err = l.conn.Read(x.in.buf[x.in.w:])
		x.in.w += n
	}
	switch {
	case n > 0:
		x.seen = true
		return nil
	case err == nil:
		err = io.ErrNoProgress
	}
	return err
}

func (l *life) doFill(fd uintptr) bool {
	x := &l.rx
	x.in.ready(x.need)
	n, again, err := readInto(int(fd), x.in.buf[x.in.w:])
	if again && l.dev.set.spin > 0 {
		n, again, err = l.spin(int(fd))
	}
	if again {
		l.hurry()
		x.in.release()
		return false
	}
	x.in.w += n
	x.seen = true
	x.err = err
	return true
}

// spin is readInto again and again, for the time of the parameter of that name.
func (l *life) spin(fd int) (n int, again bool, err error) {
	x := &l.rx
	for end := time.Now().Add(l.dev.set.spin); l.attention.Load()&broken == 0; {
		n, again, err = readInto(fd, x.in.buf[x.in.w:])
		if !again || time.Now().After(end) {
			return n, again, err
		}
		runtime.Gosched()
	}
	return 0, true, nil
}
