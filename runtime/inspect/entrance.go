package inspect

import (
	"errors"
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
	spare *os.File               // a descriptor; nil while a visitor has it, or there is none
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
	for errors.Is(err, syscall.EMFILE) {
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
	v.leave = sync.OnceFunc(func() { e.left(v) })
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

// left is called when a visitor has gone.
func (e *entrance) left(v *visitor) {
	e.mu.Lock()
	delete(e.in, v)
	e.mu.Unlock()
	e.reserve()
	<-e.places
}

// reserve keeps a descriptor for a visitor.
func (e *entrance) reserve() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.spare == nil {
		e.spare, _ = os.Open(os.DevNull) // nil where there is none
	}
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

// end gives the spare descriptor back.
func (e *entrance) end() { e.lend() }

type visitor struct {
	net.Conn
	from  string
	leave func()
}

// Close gives the place back.
func (v *visitor) Close() error {
	defer v.leave()
	return v.Conn.Close()
}

// hostOf is the host of an address, "host:port"; the address where it has no port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
