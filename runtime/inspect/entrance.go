package inspect

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	brief      = 250 * time.Millisecond // that a visitor stays at least, though others wait
	descriptor = 100 * time.Millisecond // between two looks whether a visitor needs the spare one
)

// entrance lets a bounded number of visitors in at a time. Others wait in the system's backlog, but not
// for long: those of the address with the most who have been in for more than a moment leave then. In
// a process without descriptors it has one for a visitor.
type entrance struct {
	net.Listener
	places chan struct{}

	mu    sync.Mutex
	in    map[*visitor]time.Time // since when
	over  bool                   // the page is served no more
	spare io.Closer              // what has a descriptor; nil while a visitor has it, or there is none
}

// newEntrance has a descriptor to spare when it returns, so that a program which takes all others at once
// leaves the page that one.
func newEntrance(l net.Listener) *entrance {
	e := &entrance{Listener: l, places: make(chan struct{}, mostVisitors)}
	e.reserve()
	return e
}

// Accept waits for a place, and then for a visitor. A server that closes its connections gives
// places back, so it waits for none.
func (e *entrance) Accept() (net.Conn, error) {
	e.reserve()
	e.place()
	c, err := e.Listener.Accept()
	for isScarce(err) {
		if waits(e.Listener) && e.lend() {
			c, err = e.Listener.Accept()
			continue
		}
		time.Sleep(descriptor)
		e.reserve() // where the program has taken the spare one, and closed another
		c, err = e.Listener.Accept()
	}
	if err != nil {
		<-e.places
		return nil, err
	}
	v := &visitor{Conn: c, from: hostOf(c.RemoteAddr().String())}
	v.leave = sync.OnceValue(func() error { return e.leave(v) })
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.in == nil {
		e.in = make(map[*visitor]time.Time)
	}
	e.in[v] = time.Now()
	return v, nil
}

// place waits for a place, and makes some where none gets free.
func (e *entrance) place() {
	timer := time.NewTimer(brief)
	defer timer.Stop()
	for {
		select {
		case e.places <- struct{}{}:
			return
		case <-timer.C:
			for _, v := range e.slow() {
				_ = v.Close() // which gives its place back
			}
			timer.Reset(brief)
		}
	}
}

// slow are the visitors of the address with the most of those who have been in for a while.
func (e *entrance) slow() (most []*visitor) {
	e.mu.Lock()
	defer e.mu.Unlock()
	by := make(map[string][]*visitor)
	for v, since := range e.in {
		if time.Since(since) < brief {
			continue
		}
		by[v.from] = append(by[v.from], v)
		if all := by[v.from]; len(all) > len(most) {
			most = all
		}
	}
	return most
}

// leave sees a visitor out, and gives its place back.
func (e *entrance) leave(v *visitor) (err error) {
	if !e.retain(v.Conn) {
		err = v.Conn.Close()
	}
	e.mu.Lock()
	delete(e.in, v)
	e.mu.Unlock()
	<-e.places
	return err
}

// retain ends a connection, and keeps it for its descriptor where there is no spare one: between a
// close and the reserve behind it another goroutine of a full process would take the descriptor.
func (e *entrance) retain(c net.Conn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	ends, ok := c.(interface{ CloseRead() error })
	if e.spare != nil || e.over || !ok {
		return false
	}
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		_ = w.CloseWrite() // the visitor sees the end of the answer
	}
	_ = ends.CloseRead()
	_ = c.SetDeadline(time.Unix(1, 0)) // whoever reads or writes there returns
	e.spare = c
	return true
}

// reserve keeps a descriptor for a visitor: that of a file, also in place of a connection's, which
// would keep the peer's end in the system.
func (e *entrance) reserve() {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, isFile := e.spare.(*os.File)
	if isFile || e.over {
		return
	}
	f, err := os.Open(os.DevNull)
	if err != nil {
		return
	}
	if e.spare != nil {
		_ = e.spare.Close()
	}
	e.spare = f
}

// isScarce reports whether a call failed for want of a descriptor, of the process or of the system.
func isScarce(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// lend gives the spare descriptor to the visitor who is accepted next; false if there is none.
func (e *entrance) lend() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.spare == nil {
		return false
	}
	_ = e.spare.Close()
	e.spare = nil
	return true
}

// end gives the spare descriptor back, and keeps no other from then on.
func (e *entrance) end() {
	e.mu.Lock()
	e.over = true
	e.mu.Unlock()
	e.lend()
}

type visitor struct {
	net.Conn
	from  string
	leave func() error // once
}

// Close ends the visit, and gives the place back.
func (v *visitor) Close() error { return v.leave() }

// hostOf is the host of an address, "host:port"; the address where it has no port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
