package iwarp

import (
	"time"

	"godat/internal/owner"
)

// writer is the connection's second goroutine, which does what blocks. It runs from
// its first job on; most connections have none before their end.
type writer struct {
	// Immutable.
	link *link
	port *port
	out  *outbox // the writer's during jobWrite

	wake chan struct{} // nil until the writer runs; the token's holder sends
	// The writer's while link.busy is set, and the token holder's otherwise.
	job  job
	tail []byte // the last octets, written by jobTeardown
	shut bool   // our half is closed, or about to be

	own owner.Tag // the writer's goroutine
}

// job is what the writer is to do, and what came of it.
type job struct {
	kind        jobKind
	n           int   // octets written
	err         error // why no more were
	uncollected bool  // the sender has not looked at these results
}

type jobKind uint8

const (
	jobMore     jobKind = iota // go on in the holder's place, which has done enough
	jobWait                    // until the socket takes more
	jobWrite                   // the outbox, on a connection without a descriptor
	jobShut                    // close our half
	jobTeardown                // write the tail, close our half, and close
)

// assign gives the writer a job. The writer has none.
func (w *writer) assign(kind jobKind) {
	w.job = job{kind: kind, uncollected: true}
	w.link.busy.Store(true)
	if w.wake == nil {
		w.wake = make(chan struct{}, 1)
		go w.run()
	}
	w.wake <- struct{}{}
}

// run is the writer's goroutine. After each job it kicks the token, so that the
// holder uses the result.
func (w *writer) run() {
	defer w.link.dev.running.Done()
	w.own.Acquire()
	defer w.own.Release()
	for range w.wake {
		switch w.job.kind {
		case jobMore: // the kick does it
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
		w.link.kick(writerBudget)
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

// writeStaged writes the outbox, which nobody else touches meanwhile.
func (w *writer) writeStaged() (n int, err error) {
	w.own.Check()
	w.link.limitWrite(true)
	for i := range w.out.pieces {
		k, err := w.link.conn.Write(w.out.pieces[i].mem)
		n += k
		if err != nil {
			return n, err
		}
	}
	w.link.limitWrite(false)
	return n, nil
}

// endStream ends a drain: the peer answers with the end of its stream, or with a
// Terminate if something went wrong there.
func (w *writer) endStream() {
	w.own.Check()
	w.link.attention.Or(finSent)
	w.link.limitWrite(true)
	w.closeWrite()
	w.link.limitEnd()
}

// teardown writes what the peer has still to get, and ends our half of the stream.
// When the peer has ended its half too, or time is up, it closes the connection.
func (w *writer) teardown() {
	w.own.Check()
	_ = w.link.conn.SetWriteDeadline(time.Now().Add(w.link.dev.set.linger))
	if len(w.tail) > 0 {
		_, _ = w.link.conn.Write(w.tail)
	}
	if !w.shut {
		w.closeWrite()
	}
	<-w.link.rxDone
	_ = w.link.conn.Close()
}

// closeWrite closes our half, or all if the connection has no halves. Nothing is
// lost then, since such a connection has no buffer.
func (w *writer) closeWrite() {
	if h, ok := w.link.conn.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite()
		return
	}
	_ = w.link.conn.Close()
}
