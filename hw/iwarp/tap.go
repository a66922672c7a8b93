package iwarp

import (
	"io"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

var _ hw.Tracer = (*queuePair)(nil)

// tap is the trace of a connection that is up already. It makes the start of the connection up,
// from what the two ends have agreed on, because a reader of traces finds FPDUs by that. Then it
// records each direction from the next FPDU on. The sender and the receiver look for a tap when
// the socket has taken or given octets.
type tap struct {
	*capture
	link *link
	ways [2]way
}

// way is one direction of a tap. The sender owns what goes out, the receiver what comes in.
type way struct {
	begun bool
	skip  int // octets that are left of the FPDU in which the trace began

	// Of a stream with markers, without which the trace has its FPDUs: readers of traces
	// misread markers, unless each packet has one FPDU.
	marked bool
	pos    uint64 // position in the stream of rest
	rest   []byte // of an FPDU that is not complete
}

// madeUp is the comment of the packets that make the start up.
const madeUp = "made up from what the ends had agreed on when the trace began"

// Trace implements [hw.Tracer].
func (q *queuePair) Trace(w io.WriteCloser) (stop func() error, err error) {
	const op = "Trace"
	c := q.conn
	switch {
	case c == nil:
		return nil, q.dev.Gone(op)
	case !c.up.Load():
		return nil, c.Invalid(op, "the queue pair is not connected")
	}
	t := newTap(&c.link, w)
	if !c.attach(t) {
		return nil, c.Invalid(op, "the connection is over, or has a trace already")
	}
	return t.over, nil
}

// attach makes t the link's tap, unless there is one or the link is over.
func (l *link) attach(t *tap) bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return !l.Dead && l.tap.CompareAndSwap(nil, t)
}

// newTap makes the tap of a link that is up. It writes the start of the connection.
func newTap(l *link, w io.WriteCloser) *tap {
	first := there
	if l.agreed.asked {
		first = here
	}
	t := &tap{capture: newCapture(l.conn, w, first), link: l}
	t.ways[here].marked, t.ways[there].marked = l.agreed.markersOut, l.agreed.markersIn
	request := wire.MPARequest{Revision: wire.MPARevision1, CRC: l.agreed.crc}
	reply := wire.MPAReply{Revision: wire.MPARevision1, CRC: l.agreed.crc}
	t.packet(first, tcpAck|tcpPsh, request.Append(nil), madeUp)
	t.packet(1-first, tcpAck|tcpPsh, reply.Append(nil), madeUp)
	return t
}

// over ends the trace, and returns what went wrong with its file.
func (t *tap) over() error {
	t.link.tap.CompareAndSwap(t, nil)
	return t.close()
}

// wrote records the next n octets of the outbox, which the socket has taken.
func (t *tap) wrote(o *outbox, n int) {
	if w := &t.ways[here]; !w.begun {
		w.begun, w.pos = true, o.written
		if i, half := o.current(); half {
			w.skip = int(o.frames[i].end - o.written)
			w.pos = o.frames[i].end
		}
	}
	for _, mem := range o.ahead(n) {
		t.record(here, mem)
	}
}

// begin begins with the octets in the receiver's buffer, unless the direction has begun, or they
// are of an FPDU that is read in place.
func (t *tap) begin(r *receiver) {
	if w := &t.ways[there]; !w.begun && !r.inPlace.begun {
		w.begun, w.pos = true, r.pos
		t.record(there, r.in.bytes())
	}
}

// placed records n octets that were read into parts.
func (t *tap) placed(parts [][]byte, n int) {
	for _, p := range parts {
		p = p[:min(n, len(p))]
		t.record(there, p)
		n -= len(p)
	}
}

// record records the next octets of a direction that has begun.
func (t *tap) record(from int, b []byte) {
	w := &t.ways[from]
	if !w.begun {
		return
	}
	n := min(w.skip, len(b))
	w.skip -= n
	b = b[n:]
	if w.marked {
		b = w.unmark(b, t.link.agreed.crc)
	}
	if !t.data(from, b) {
		_ = t.over()
	}
}

// unmark takes the markers out of the FPDUs that b completes. It returns the FPDUs with CRCs of their own.
func (w *way) unmark(b []byte, crc bool) (plain []byte) {
	w.rest = append(w.rest, b...)
	for {
		ulpdu, n, err := wire.ParseMarkedFPDU(nil, w.rest, w.pos, crc)
		switch err {
		case nil:
		case wire.ErrIncomplete:
			return plain
		default: // the end of the connection
			w.begun = false
			return append(plain, w.rest...)
		}
		plain = wire.AppendFPDU(plain, crc, ulpdu)
		w.rest, w.pos = w.rest[n:], w.pos+uint64(n)
	}
}

// came records what a read has got, if there is a trace.
func (l *link) came(b []byte, err error) {
	if t := l.tap.Load(); t != nil {
		t.came(b, err)
	}
}

// came records octets, or the end of the stream.
func (t *tap) came(b []byte, err error) {
	t.record(there, b)
	if err == io.EOF {
		t.end(there)
	}
}

// rest reads what the receiver does not look at any more.
type rest struct{ *link }

func (r rest) Read(b []byte) (int, error) {
	n, err := r.conn.Read(b)
	r.came(b[:n], err)
	return n, err
}
