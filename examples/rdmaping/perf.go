package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	dat "godat/runtime"
)

const (
	atomicSize = 8
	mostReads  = 128
	// mostBatch is how many requests a client has under way; as many bytes, at most, are
	// in the buffers of a server.
	mostBatch  = 128
	mostBuffer = 16 << 20
	// notReady is how long a send waits for the peer's receive.
	notReady = 10 * time.Second
	// endTime is how long the news of a connection's end may take after a request has failed.
	endTime = 10 * time.Second
)

// perf is one of perftest's tests.
type perf struct {
	o       *options
	s       *session
	waiting *dat.Pairing
	c       *dat.Conn
	region  *dat.LMR
	own     keys
	peer    keys
}

func playPerf(ctx context.Context, ia *dat.IA, o *options, s *session, out io.Writer) (err error) {
	t := &perf{o: o, s: s}
	defer func() { err = errors.Join(err, t.close()) }()
	if err := t.connect(ctx, ia, out); err != nil {
		return err
	}
	began := time.Now()
	if err := s.during(ctx, func(ctx context.Context) error { return t.play(ctx, s.client) }); err != nil {
		return err
	}
	took := time.Since(began)
	if !o.sends() {
		if _, err := t.meet(); err != nil {
			return err
		}
		r, err := s.swapReports(t.report(took, s.client))
		if err != nil {
			return err
		}
		if !s.client && r.average > 0 { // only the client has measured
			took = time.Duration(float64(o.Count) * float64(o.Size) / (r.average * mega) * float64(time.Second))
		}
	}
	if _, err := t.meet(); err != nil {
		return err
	}
	_, _ = s.Write(done) // nobody reads it
	o.print(out, took, o.Count*o.Size)
	return nil
}

// connect exchanges the values, and waits until the peer is ready.
func (t *perf) connect(ctx context.Context, ia *dat.IA, out io.Writer) error {
	cycle, err := t.s.greet()
	if err != nil {
		return err
	}
	if err := t.prepare(ia, cycle); err != nil {
		return err
	}
	local := t.waiting.Local()
	mtu, err := t.s.swapMTU(local.MTU)
	if err != nil {
		return err
	}
	t.own = keys{pair: local, reads: t.o.Reads, memory: t.region.Remote(0, len(t.region.Bytes()))}
	t.own.gid = local.LID == 0 || t.o.GID
	if t.peer, err = t.meet(); err != nil {
		return err
	}
	if err := t.refuses(t.s.client); err != nil {
		return err
	}
	if t.c, err = t.o.pair(ctx, t.waiting, t.peer.pair, mtu, out); err != nil {
		return err
	}
	// Both ends are connected; they print what they have; the receives of sends are posted.
	for range t.meetings() {
		if _, err := t.meet(); err != nil {
			return err
		}
	}
	return nil
}

// meet waits for the peer, and returns the peer's keys.
func (t *perf) meet() (keys, error) { return t.s.swapKeys(t.own) }

func (t *perf) close() (err error) {
	if t.c != nil {
		err = t.c.Close()
	}
	if t.waiting != nil {
		err = errors.Join(err, t.waiting.Close())
	}
	return err
}

// meetings is how often the ends meet between the exchange of keys and the traffic.
func (t *perf) meetings() int {
	if t.o.sends() {
		return 3
	}
	return 2
}

// prepare makes this end's connection with its region. Perftest writes and reads in a cycle of
// so many bytes if its messages are shorter.
func (t *perf) prepare(ia *dat.IA, cycle int) (err error) {
	cfg := dat.ConnConfig{
		Depth: t.batch(), Message: 64,
		Attr: &dat.EndpointAttr{MaxReadIn: t.o.Reads, MaxReadOut: t.o.Reads, ReceiverNotReady: notReady},
	}
	if t.o.sends() {
		cfg.Message = t.o.Size
	}
	cfg.Setup = func(c *dat.Conn) (_ []byte, err error) {
		privileges := dat.AllPrivileges
		if t.o.Test == "atomic_bw" {
			privileges |= dat.RemoteAtomic
		}
		t.region, err = c.Alloc(max(t.o.Size, cycle), privileges)
		return nil, err
	}
	t.waiting, err = ia.NewPaired(cfg)
	return err
}

// batch is how many messages or requests are under way.
func (t *perf) batch() int { return min(mostBatch, max(2, mostBuffer/t.o.Size)) }

// refuses returns what is wrong with the peer's keys.
func (t *perf) refuses(client bool) error {
	switch {
	case !client || t.o.sends():
		return nil
	case t.peer.memory.Context == 0:
		return errors.New("the peer gave no remote key: does it run the same test?")
	case (t.o.Test == "read_bw" || t.o.Test == "atomic_bw") && t.peer.reads < t.o.Reads:
		return fmt.Errorf("the peer takes %d reads at a time, and this end would make %d: use -o %d", t.peer.reads, t.o.Reads, max(1, t.peer.reads))
	}
	t.peer.memory.Len = uint32(t.o.Size) // which perftest does not say
	return nil
}

// play is the traffic. A server of writes, reads and atomics has nothing to do.
func (t *perf) play(ctx context.Context, client bool) error {
	switch {
	case t.o.Test == "send_lat":
		g := &game{o: t.o, conns: []*dat.Conn{t.c}}
		return g.play(ctx)
	case client:
		return t.stream(ctx)
	case t.o.sends():
		return t.take(ctx)
	}
	return nil
}

// stream makes all requests, a batch at a time.
func (t *perf) stream(ctx context.Context) error {
	one := dat.DTO{Segment: t.region.Segment(0, t.o.Size), Remote: t.peer.memory}
	switch t.o.Test {
	case "send_bw":
		one.Op, one.Remote = dat.OpSend, dat.RemoteSegment{}
	case "write_bw":
		one.Op = dat.OpWrite
	case "read_bw":
		one.Op = dat.OpRead
	case "atomic_bw":
		one.Op, one.Operand = dat.OpFetchAdd, 1
	}
	batch := make([]dat.DTO, t.batch())
	for i := range batch {
		batch[i] = one
	}
	for left := t.o.Count; left > 0; {
		n := min(left, len(batch))
		if err := t.c.Do(ctx, batch[:n]...); err != nil {
			return fmt.Errorf("after %d of %d: %w", t.o.Count-left, t.o.Count, t.why(ctx, err))
		}
		left -= n
	}
	return nil
}

// why adds to the error of a request why the connection ended, if it did.
func (t *perf) why(ctx context.Context, failed error) error {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	b, err := t.c.Receive(ctx)
	if err == nil || ctx.Err() != nil {
		t.c.Release(b)
		return failed
	}
	return fmt.Errorf("%w: %w", failed, err)
}

// take takes all messages.
func (t *perf) take(ctx context.Context) error {
	g := game{o: t.o}
	for i := range t.o.Count {
		b, err := t.c.Receive(ctx)
		if err != nil {
			return fmt.Errorf("after %d of %d messages: %w", i, t.o.Count, err)
		}
		err = g.look(b.Bytes())
		t.c.Release(b)
		if err != nil {
			return err
		}
	}
	return nil
}

const mega = 1 << 20 // perftest's MB

func (t *perf) report(took time.Duration, client bool) report {
	if !client {
		return report{}
	}
	rate := float64(t.o.Count) / max(took.Seconds(), 1e-9)
	average := rate * float64(t.o.Size) / mega
	return report{size: uint64(t.o.Size), count: uint64(t.o.Count), peak: average, average: average, rate: rate / 1e6}
}
