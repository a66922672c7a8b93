package program

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"

	"godat/runtime/stream"
)

// Streams is a program of byte streams, both ways at a time: writes and reads of any length, deadlines that
// pass, streams that end by CloseWrite, and connections that are closed in the middle.
type Streams struct{ Size }

// talk is what the judge knows of one connection.
type talk struct {
	id             uint64
	client, server string // hosts
	ends           [2]end // the client's, the server's
}

// end is one end of a connection.
type end struct {
	name  string
	mu    sync.Mutex
	wrote int   // octets that Write took
	over  bool  // CloseWrite or Close was called
	shut  bool  // Close was called, before everything had been read
	read  int   // octets that came
	why   error // why there are no more; nil if the program read no further
}

// note changes what the judge knows of an end.
func (e *end) note(change func(*end)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(e)
}

// talks are those of a run, by their ids.
type talks struct {
	config stream.Config // of all ends
	mu     sync.Mutex
	all    map[uint64]*talk
}

func (t *talks) begin(id uint64, host, server string) *talk {
	t.mu.Lock()
	defer t.mu.Unlock()
	is := &talk{id: id, client: host, server: server}
	is.ends[0].name, is.ends[1].name = host, "its server"
	t.all[id] = is
	return is
}

func (t *talks) of(id uint64) *talk {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[id]
}

// Run runs the program.
func (p Streams) Run(w *World) error {
	ring := []int{4 << 10, 16 << 10, 64 << 10}[w.Draw(2).IntN(3)] // so narrow that writers wait
	known := &talks{config: stream.Config{Ring: ring}, all: make(map[uint64]*talk)}
	err := p.play(w, func(ctx context.Context, s *service) error {
		first, err := stream.Listen(ctx, s.ia, w.Listens(s.host), known.config)
		if err != nil {
			return err
		}
		s.address = first.Addr().String()
		s.running.Go(func() { serveStreams(ctx, w, known, s, first) })
		return nil
	}, func(ctx context.Context, is party) {
		draw := w.Draw(200 + is.number)
		for n := range p.Rounds {
			sleep(ctx, time.Duration(draw.Int64N(int64(mostPause))))
			id := is.number<<32 | uint64(n)
			to := draw.IntN(len(is.addrs))
			conn := dialStream(ctx, w, is, is.addrs[to], known.config)
			if conn == nil {
				return
			}
			header := binary.BigEndian.AppendUint64(nil, id)
			speak(w, conn, known.begin(id, is.host, is.hosts[to]), 0, ring, rand.New(rand.NewPCG(draw.Uint64(), 0)), header)
		}
	})
	for _, t := range known.all {
		t.judge(w)
	}
	return err
}

// serveStreams serves until ctx ends, by one listener after the other.
func serveStreams(ctx context.Context, w *World, known *talks, s *service, now *stream.Listener) {
	for {
		var accepting sync.WaitGroup
		accepting.Go(func() {
			for {
				conn, err := now.Accept()
				if temporary, ok := errors.AsType[net.Error](err); ok && temporary.Timeout() {
					continue
				}
				if err != nil {
					return
				}
				s.running.Go(func() { answerStream(w, known, conn) })
			}
		})
		select {
		case <-s.restart:
		case <-ctx.Done():
		}
		if err := now.Close(); err != nil {
			w.Wrong("%s: Close of the listener: %v", s.host, err)
		}
		accepting.Wait()
		if ctx.Err() != nil {
			return
		}
		w.Step(s.host, "a further listener")
		next, err := stream.Listen(ctx, s.ia, s.address, known.config)
		if err != nil {
			w.Wrong("%s: no further listener: %v", s.host, err)
			return
		}
		now = next
	}
}

// dialStream dials until there is a server, for a minute.
func dialStream(ctx context.Context, w *World, is party, addr string, config stream.Config) net.Conn {
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	dialer := stream.Dialer{IA: is.ia, Config: config}
	for {
		conn, err := dialer.DialContext(bounded, "tcp", addr)
		if err == nil {
			return conn
		}
		w.Step(is.host, "no stream to %s: %v", addr, err)
		if !sleep(bounded, 100*time.Millisecond) {
			w.Wrong("%s: no server in a minute: %v", is.host, err)
			return nil
		}
	}
}

// answerStream is the server's side of a connection.
func answerStream(w *World, known *talks, conn net.Conn) {
	header := make([]byte, 8)
	if _, err := io.ReadFull(conn, header); err != nil {
		w.Step("server", "a stream without a beginning: %v", err)
		_ = conn.Close()
		return
	}
	id := binary.BigEndian.Uint64(header)
	t := known.of(id)
	if t == nil {
		w.Wrong("a stream began with %x, which nobody sent", header)
		_ = conn.Close()
		return
	}
	speak(w, conn, t, 1, known.config.Ring, w.Draw(1<<40|id), nil)
}

// speak writes and reads at one end of a connection until both are over, or until it closes the connection in
// the middle.
func speak(w *World, conn net.Conn, t *talk, side, ring int, draw *rand.Rand, header []byte) {
	e, other := &t.ends[side], &t.ends[1-side]
	begins := side == 0
	writes, reads := rand.New(rand.NewPCG(draw.Uint64(), 1)), rand.New(rand.NewPCG(draw.Uint64(), 2))
	var leaves time.Duration
	if draw.IntN(6) == 0 {
		leaves = time.Duration(1+draw.IntN(100)) * time.Millisecond
	}
	var both sync.WaitGroup
	both.Go(func() {
		if _, err := conn.Write(header); err != nil {
			e.failed(w, t, other, "begin", err)
			return
		}
		e.write(w, conn, t, other, ring, writes)
	})
	both.Go(func() { e.readAll(w, conn, t, other, begins, reads) })
	if leaves > 0 {
		time.Sleep(leaves)
		e.note(func(e *end) { e.shut = true })
	} else {
		both.Wait()
	}
	e.note(func(e *end) { e.over = true })
	err := conn.Close()
	both.Wait()
	w.Step(e.name, "stream %x: wrote %d, read %d, %v; Close: %v", t.id, e.wrote, e.read, e.why, err)
}

// octets are those of one direction of a connection, from a position on.
func octets(b []byte, id uint64, side, from int) {
	for i := range b {
		x := (uint64(from+i)+1)*0x9E3779B97F4A7C15 ^ (id<<1|uint64(side))*0xBF58476D1CE4E5B9
		b[i] = byte(x >> 53)
	}
}

// write writes pieces, and ends the stream.
func (e *end) write(w *World, conn net.Conn, t *talk, other *end, ring int, draw *rand.Rand) {
	side := 0
	if e == &t.ends[1] {
		side = 1
	}
	most, pieces := 40_000, draw.IntN(8)
	switch draw.IntN(6) {
	case 0:
		most = 300_000 // which go straight into the memory of a Read
	case 1, 2:
		most, pieces = 200, draw.IntN(300) // which leave few slots and credits
	}
	piece := make([]byte, 1+draw.IntN(most))
	for range pieces {
		b := piece[:1+draw.IntN(len(piece))]
		if draw.IntN(3) == 0 {
			b = b[:min(len(b), 2000)]
		}
		octets(b, t.id, side, e.wrote)
		var deadline time.Time
		if draw.IntN(4) == 0 {
			deadline = time.Now().Add(time.Duration(draw.IntN(20_000)) * time.Microsecond)
		}
		_ = conn.SetWriteDeadline(deadline)
		empty, began := false, time.Now()
		other.note(func(other *end) { empty = other.read == e.wrote })
		n, err := conn.Write(b)
		e.note(func(e *end) { e.wrote += n })
		if took := time.Since(began); empty && n <= ring/2 && took > mostWrite && !w.Disturbed(t.client, t.server) {
			w.Wrong("%s: a Write of %d on stream %x took %v, though its peer had read all before it, and leaves room for %d", e.name, n, t.id, took, ring/2)
		}
		switch {
		case err != nil && errors.Is(err, os.ErrDeadlineExceeded) && !deadline.IsZero():
			if time.Now().Before(deadline) {
				w.Wrong("%s: a Write's deadline passed before its time", e.name)
			}
		case err != nil:
			e.failed(w, t, other, "Write", err)
			return
		case n != len(b):
			w.Wrong("%s: a Write of %d took %d, and no error", e.name, len(b), n)
		}
		if pieces < 8 && draw.IntN(3) == 0 {
			time.Sleep(time.Duration(draw.IntN(30)) * time.Millisecond)
		}
	}
	_ = conn.SetWriteDeadline(time.Time{})
	e.note(func(e *end) { e.over = true })
	if err := conn.(*stream.Conn).CloseWrite(); err != nil {
		e.failed(w, t, other, "CloseWrite", err)
	}
}

// readAll reads until the end.
func (e *end) readAll(w *World, conn net.Conn, t *talk, other *end, client bool, draw *rand.Rand) {
	side := 0 // whose octets come
	if client {
		side = 1
	}
	buf, want := make([]byte, 1+draw.IntN(100_000)), make([]byte, 100_000)
	whole, rests := draw.IntN(2) == 0, 3 // whether its Reads are of one length, and how often it rests for long
	for {
		b := buf
		if !whole {
			b = buf[:1+draw.IntN(len(buf))]
		}
		var deadline time.Time
		if draw.IntN(4) == 0 {
			deadline = time.Now().Add(time.Duration(draw.IntN(50_000)) * time.Microsecond)
		}
		_ = conn.SetReadDeadline(deadline)
		n, err := conn.Read(b)
		octets(want[:n], t.id, side, e.read)
		if string(want[:n]) != string(b[:n]) {
			w.Wrong("%s: stream %x has other octets behind octet %d than were written", e.name, t.id, e.read)
		}
		e.note(func(e *end) { e.read += n })
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded) && !deadline.IsZero():
			if time.Now().Before(deadline) {
				w.Wrong("%s: a Read's deadline passed before its time", e.name)
			}
		default:
			e.note(func(e *end) { e.why = err })
			if !errors.Is(err, io.EOF) {
				e.failed(w, t, other, "Read", err)
			}
			return
		}
		switch {
		case n >= 100 && draw.IntN(4) == 0:
			time.Sleep(time.Duration(draw.IntN(30)) * time.Millisecond)
		case rests > 0 && draw.IntN(20) == 0:
			rests--
			time.Sleep(2 * mostWrite)
		}
	}
}

// mostWrite is how long a Write may take for which there is room.
const mostWrite = time.Second

// failed judges an error: somebody must have closed the connection, or the network must have had trouble.
func (e *end) failed(w *World, t *talk, other *end, call string, err error) {
	var closed bool
	for _, some := range []*end{e, other} {
		some.note(func(some *end) { closed = closed || some.shut })
	}
	if !closed && !w.Disturbed(t.client, t.server) {
		w.Wrong("%s: %s on stream %x, which nobody closed, over a network without trouble: %v", e.name, call, t.id, err)
	}
}

// judge compares the two ends of a connection that is over.
func (t *talk) judge(w *World) {
	for i := range t.ends {
		from, to := &t.ends[i], &t.ends[1-i]
		switch {
		case to.read > from.wrote:
			w.Wrong("%s: %d octets came of stream %x, and %d were written", to.name, to.read, t.id, from.wrote)
		case errors.Is(to.why, io.EOF) && (!from.over || to.read != from.wrote):
			w.Wrong("%s: stream %x has ended after %d octets of %d", to.name, t.id, to.read, from.wrote)
		}
	}
}
