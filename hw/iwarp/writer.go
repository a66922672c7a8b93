package iwarp

import (
	"net"
	"time"

	"godat/hw/iwarp/internal/sock"
	"godat/internal/labels"
	"godat/internal/owner"
)

// writer is the connection's second goroutine, for calls that block. It runs from its
// first job on; most connections have no job before their end.
type writer struct {
	// Immutable.
	link *link
	port *port
	out  *outbox // owned by the writer during jobWrite

	wake chan struct{} // nil until the writer runs; the token's holder sends
	// Owned by the writer while link.busy is set, and by the token's holder otherwise.
	job  job
	tail []byte // the last octets, written by jobTeardown
	shut bool   // this end's half is closed, or about to be

	pause sock.Pause

	own owner.Tag // held by the writer's goroutine
}

// job is a job of the writer, and its results.
type job struct {
	kind        jobKind
	n           int   // octets written
	err         error // why no more octets were written
	uncollected bool  // the sender has not collected these results
}

type jobKind uint8

const (
	jobMore     jobKind = iota // go on as the holder, because the last holder's budget is used up
	jobWait                    // wait until the socket takes more
	jobWrite                   // write the outbox, on a connection without a descriptor
	jobShut                    // close this end's half
	jobTeardown                // write the tail, close this end's half, and close
)

// assign gives the writer, which has no job, a job. The token's holder calls it.
func (w *writer) assign(kind jobKind) {
	w.job = job{kind: kind, uncollected: true}
	w.link.busy.Store(true)
	if w.wake == nil {
		w.wake = make(chan struct{}, 1)
		go w.run()
	}
	w.wake <- struct{}{}
}

var writerLabel = labels.Of("iwarp: a writer")

// run is the writer's goroutine. After each job it kicks the token, so that the
// holder uses the result.
func (w *writer) run() {
	writerLabel.Set()
	defer w.link.dev.running.Done()
	w.own.Acquire()
	defer w.own.Release()
	for range w.wake {
		switch w.job.kind {
		case jobMore:
			w.pause.Now() // the kick below makes the writer the holder
		case jobWait:
			w.job.err = w.await()
		case jobWrite:
			w.job.n, w.job.err = w.writeStaged()
		case jobShut:
			w.endStream()
		case jobTeardown:
			w.teardown()
			return
		}
		w.link.busy.Store(false)
		w.link.kick(byWriter)
	}
}

// await waits until the socket takes more.
func (w *writer) await() error {
	w.own.Check()
	w.link.limitWrite(true)
	err := w.port.await()
	w.link.limitWrite(false)
	return err
}

// writeStaged writes the outbox, which no other goroutine touches meanwhile.
func (w *writer) writeStaged() (n int, err error) {
	w.own.Check()
	defer w.link.limitWrite(false)
	for i := range w.out.pieces {
		w.link.limitWrite(true) // anew for each piece: the peer has taken the one before
		k, err := w.link.conn.Write(w.out.pieces[i].mem)
		n += k
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// endStream ends this end's half in a drain. The peer answers with the end of its stream,
// or with a Terminate if a request failed there.
func (w *writer) endStream() {
	w.own.Check()
	w.link.attention.Or(finSent)
	w.link.limitWrite(true)
	w.closeWrite()
	w.link.limitWrite(false)
	w.link.limitEnd()
}

// teardown writes the octets that the peer must still get, and ends this end's half of
// the stream. When the peer has ended its half too, or the time linger is over, it closes
// the connection.
func (w *writer) teardown() {
	w.own.Check()
	if len(w.tail) > 0 {
		inTime(w.link.dev.set.linger, w.link.conn.SetWriteDeadline, w.writeTail)
	}
	if !w.shut {
		w.closeWrite()
	}
	<-w.link.rxDone
	_ = w.link.conn.Close()
	if t := w.link.tap.Load(); t != nil {
		_ = t.over()
	}
}

// writeTail writes what is left of the last octets.
func (w *writer) writeTail() error {
	w.own.Check()
	n, err := w.link.conn.Write(w.tail)
	if t := w.link.tap.Load(); t != nil {
		t.record(here, w.tail[:n])
	}
	w.tail = w.tail[n:]
	return err
}

// lateTries is how often a goroutine that came too late for its own deadline gets another.
const lateTries = 3

// inTime calls act, which uses the socket for the time limit at most: set sets its deadline.
// In a busy process the goroutine may not run before the deadline has passed, and then act
// has done nothing. The peer is not to blame for that: act gets its time again.
func inTime(limit time.Duration, set func(time.Time) error, act func() error) {
	for range lateTries {
		began := time.Now()
		_ = set(began.Add(limit))
		if err := act(); !expired(err) || time.Since(began) < limit+limit/4 {
			return
		}
	}
}

// closeWrite closes this end's half.
func (w *writer) closeWrite() {
	if t := w.link.tap.Load(); t != nil {
		t.end(here)
	}
	_ = closeWrite(w.link.conn)
}

// closeWrite closes this end's half, or the whole connection if it has no halves. Then no
// octets are lost, because such a connection has no buffer.
func closeWrite(conn net.Conn) error {
	if h, ok := conn.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return conn.Close()
}
