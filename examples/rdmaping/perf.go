package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"godat/ep"
	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

const (
	atomicSize = 8
	mostReads  = 128
	// mostBatch is how many requests of a connection are under way; as many bytes, at most, are
	// in the buffers of all that take messages.
	mostBatch  = 128
	mostBuffer = 16 << 20
	// notReady is how long a send waits for the peer's receive.
	notReady = 10 * time.Second
	// endTime is how long the news of a connection's end may take after a request has failed,
	// and the first word of a client.
	endTime = 10 * time.Second
)

// perf is one of perftest's tests.
type perf struct {
	o     *options
	s     *session
	links []*link // -q of them
	half  int     // bytes of a region that the peer's requests are for
}

// link is one of the connections of a test.
type link struct {
	waiting *dat.Pairing
	c       *dat.Conn
	region  *mem.LMR
	own     keys
	peer    keys
	told    bool // peer has been told
}

func playPerf(ctx context.Context, ia *dat.IA, o *options, s *session, out io.Writer) (err error) {
	t := &perf{o: o, s: s}
	defer func() { err = errors.Join(err, t.close()) }()
	if err := t.connect(ctx, ia, out); err != nil {
		return err
	}
	if o.hosts() {
		return t.host(out)
	}
	var last report
	for _, size := range o.sizes() {
		if last, err = t.round(ctx, size, out); err != nil {
			return err
		}
	}
	switch {
	case o.Test == "write_lat": // its ends part without a word
		time.Sleep(linger)
		return nil
	case !o.sends() && !o.latency() && !o.Both:
		if err := t.meet(); err != nil {
			return err
		}
		if _, err := s.swapReports(last); err != nil {
			return err
		}
	}
	return t.part()
}

// round is the traffic of messages of one size.
func (t *perf) round(ctx context.Context, size int, out io.Writer) (report, error) {
	o := t.o
	if o.sends() || o.Both {
		if err := t.meet(); err != nil {
			return report{}, err
		}
	}
	began := time.Now()
	if err := t.s.during(ctx, func(ctx context.Context) error { return t.play(ctx, size) }); err != nil {
		return report{}, err
	}
	took := time.Since(began)
	own := reported(took, size, uint64(o.Count)*uint64(o.Pairs))
	if err := t.compare(own); err != nil {
		return own, err
	}
	bytes := own.count * own.size
	if o.Both {
		bytes *= 2
	}
	measured(out, took, own.count, bytes)
	return own, nil
}

// compare is what the ends say to each other behind the traffic of one size.
func (t *perf) compare(own report) error {
	o := t.o
	if o.Both && o.All && !o.sends() {
		if err := t.meet(); err != nil {
			return err
		}
	}
	if o.Both {
		theirs, err := t.s.swapReports(own)
		if err != nil {
			return err
		}
		switch {
		case theirs.size > mostSize: // it was no report
			return errUnlike
		case theirs.size != own.size || theirs.count != own.count:
			return fmt.Errorf("the peer made %d requests of %d bytes, not %d of %d: give both ends the same size (-s or -a), count (-n) and -b",
				theirs.count, theirs.size, own.count, own.size)
		}
	}
	if o.All && o.Test == "send_bw" {
		return t.meet()
	}
	return nil
}

// host waits until the peer has made its requests. Only the peer has measured, and of all
// sizes it says how the last one went; of latency it says nothing.
func (t *perf) host(out io.Writer) error {
	began := time.Now()
	r := report{size: uint64(t.o.Size), count: uint64(t.o.Count)}
	if !t.o.latency() {
		if err := t.meet(); err != nil {
			return err
		}
		var err error
		if r, err = t.s.swapReports(report{}); err != nil {
			return err
		}
	}
	if err := t.part(); err != nil {
		return err
	}
	took := time.Since(began)
	bytes := r.count * r.size
	if r.average > 0 {
		took = time.Duration(float64(bytes) / (r.average * mega) * float64(time.Second))
	}
	measured(out, took, r.count, bytes)
	return nil
}

// part ends the session.
func (t *perf) part() error {
	if err := t.meet(); err != nil {
		return err
	}
	_, _ = t.s.Write(done) // nobody reads it
	return nil
}

// connect exchanges the values, and waits until the peer is ready.
func (t *perf) connect(ctx context.Context, ia *dat.IA, out io.Writer) error {
	cycle, err := t.s.greet()
	if err != nil {
		return err
	}
	t.half = max(t.o.Size, cycle)
	for range t.o.Pairs {
		if err := t.prepare(ia); err != nil {
			return err
		}
	}
	own := t.links[0].own.pair.MTU
	if t.o.MTU != 0 {
		own = min(own, t.o.MTU)
	}
	theirs, err := t.s.swapMTU(own)
	if err != nil {
		return err
	}
	if !t.o.sends() && t.o.latency() { // these greet once more
		if err := t.meet(); err != nil {
			return err
		}
	}
	if err := t.swapAll(); err != nil {
		return err
	}
	for _, l := range t.links {
		if err := t.refuses(l); err != nil {
			return err
		}
		if l.c, err = t.o.pair(ctx, l.waiting, l.peer.pair, min(own, theirs), out); err != nil {
			return err
		}
	}
	// Both ends are connected; they print what they have; they are ready.
	steps := []func() error{t.swapAll, t.meet}
	if t.o.sends() {
		steps = []func() error{t.meet, t.swapAll}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	t.s.over = errGone
	if t.o.Both && !t.o.sends() {
		t.s.patience = 0 // a peer that is done has nothing to do with this end's requests
	}
	return nil
}

// swapAll exchanges the keys of all connections.
func (t *perf) swapAll() error {
	for _, l := range t.links {
		if err := t.swap(l); err != nil {
			return err
		}
	}
	return nil
}

// meet waits for the peer: both ends give the keys of the first connection.
func (t *perf) meet() error { return t.swap(t.links[0]) }

// swap exchanges the keys of a connection. They stay what they are.
func (t *perf) swap(l *link) error {
	peer, err := t.s.swapKeys(l.own)
	if err != nil {
		return err
	}
	if l.told {
		if peer != l.peer {
			return fmt.Errorf("the peer gives queue pair %#06x and PSN %#06x where %#06x and %#06x were before: give both ends the same test and as many queue pairs (-q)",
				peer.pair.QPN, peer.pair.PSN, l.peer.pair.QPN, l.peer.pair.PSN)
		}
		return nil
	}
	for _, other := range t.links {
		if other.told && other.peer.pair.QPN == peer.pair.QPN {
			return fmt.Errorf("the peer gives queue pair %#06x again, where one more is due: give both ends the same test and as many queue pairs (-q)", peer.pair.QPN)
		}
	}
	l.peer, l.told = peer, true
	return nil
}

func (t *perf) close() (err error) {
	for _, l := range t.links {
		if l.c != nil {
			err = errors.Join(err, l.c.Close())
		}
		err = errors.Join(err, l.waiting.Close())
	}
	return err
}

// prepare makes a connection of this end with its region.
func (t *perf) prepare(ia *dat.IA) error {
	l := &link{}
	cfg := dat.ConnConfig{
		Depth: mostBatch, Message: 64,
		Attr: &ep.Attr{MaxReadIn: t.o.Reads, MaxReadOut: t.o.Reads, ReceiverNotReady: notReady},
	}
	if t.o.sends() {
		cfg.Depth, cfg.Message = t.batch(), t.o.Size
	}
	cfg.Setup = func(c *dat.Conn) (_ []byte, err error) {
		privileges := hw.AllPrivileges
		if t.o.atomic() {
			privileges |= hw.RemoteAtomic
		}
		l.region, err = c.Alloc(t.half+t.apart(), privileges)
		return nil, err
	}
	var err error
	if l.waiting, err = ia.NewPaired(cfg); err != nil {
		return err
	}
	t.links = append(t.links, l)
	local := l.waiting.Local()
	l.own = keys{pair: local, reads: t.o.Reads, memory: l.region.Remote(0, t.half)}
	l.own.gid = local.LID == 0 || t.o.GID
	return nil
}

// apart is where in its region an end has the bytes of its own requests.
func (t *perf) apart() int {
	if t.o.apart() {
		return t.half
	}
	return 0
}

// batch is how many messages or requests of a connection are under way.
func (t *perf) batch() int {
	if t.o.latency() && !t.o.sends() {
		return 1
	}
	return min(mostBatch, max(2, mostBuffer/t.o.Size/t.o.Pairs))
}

// refuses returns what is wrong with a peer's keys.
func (t *perf) refuses(l *link) error {
	switch {
	case t.o.hosts() || t.o.sends():
		return nil
	case l.peer.memory.Context == 0:
		return errors.New("the peer gave no remote key: does it run the same test?")
	case t.o.fetches() && l.peer.reads < t.o.Reads:
		return fmt.Errorf("the peer takes %d reads at a time, and this end would make %d: use -o %d", l.peer.reads, t.o.Reads, max(1, l.peer.reads))
	}
	return nil
}
