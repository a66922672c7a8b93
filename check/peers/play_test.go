package peers

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/hw/iwarp"
	"godat/mem"
	dat "godat/runtime"
)

// tunings are settings of the peers' provider.
var tunings = [...]map[string]string{
	nil,
	{"crc": "false"},
	{"markers": "true"},
	{"fpdu": "1460", "big": "false"},
	{"extensions": "false"},
	{"revision": "1"},
}

// A peer has two lots of memory, of the Go heap, which live on when the connection is closed. Its
// own has first its receives, and then what it sends, which is more than the steps need. What it
// lends, servers may read and write; there its reads go, too, and behind them stand all blocks
// that it may tell of. The peer itself does not touch that: a server does what it likes there, at
// any time.
const (
	sinks   = 128 << 10
	receive = 4096 + 64 // bytes, of one receive
	beside  = 8 << 10   // bytes that a step may take beside its size
)

// sources is where what the peer sends begins, in its own memory.
func (p peer) sources() int { return p.depth * receive }

// need is how much memory of its own a peer needs; lastWords takes a step twice.
func (p peer) need() (n int) {
	for _, s := range p.steps {
		n += 2 * (s.size + beside)
	}
	return n + p.sources()
}

// The bounds of a wait for something that need not come.
const (
	shortly = 150 * time.Millisecond
	atMost  = 3 * time.Second
)

// play plays a program against a server, and returns when all peers have gone. It complains of
// answers that nobody is due.
func (p program) play(ctx context.Context, addr string) error {
	var all sync.WaitGroup
	var errs complaints
	for _, p1 := range p.peers {
		for range p1.alike {
			a := &actor{peer: p1, kind: &servers[p.server], addr: addr, errs: &errs}
			all.Go(func() { a.play(ctx) })
		}
	}
	all.Wait()
	return errs.err()
}

// complaints gathers the errors of peers.
type complaints struct {
	mu   sync.Mutex
	errs []error
}

func (c *complaints) add(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && len(c.errs) < 3 {
		c.errs = append(c.errs, err)
	}
}

func (c *complaints) err() error { return errors.Join(c.errs...) }

// actor plays a peer.
type actor struct {
	peer
	kind *kind
	addr string
	errs *complaints

	ia     *dat.IA
	tcp    []net.Conn // what the adapter has dialed
	conn   *dat.Conn
	bytes  []byte
	own    *mem.LMR          // of bytes
	lent   *mem.LMR          // to the server
	window mem.RemoteSegment // of the server
	next   int               // in bytes: what is sent next
	asked  int               // requests made

	news  chan struct{} // has a value when something has come
	heard sync.WaitGroup

	mu   sync.Mutex
	owed map[[sha256.Size]byte]int // of an echo: messages sent, by hash
}

func (a *actor) play(ctx context.Context) {
	if a.begin == halfFrame || a.begin == noise {
		a.disturb(ctx)
		return
	}
	var err error
	options := []dat.Option{dat.WithParams(tunings[a.tuning])}
	if a.end == resets {
		options = append(options, dat.WithProvider(iwarp.New(iwarp.Config{Dial: a.dial})))
	}
	if a.ia, err = dat.Open(ctx, device, options...); err != nil {
		a.errs.add(err)
		return
	}
	defer func() { a.errs.add(a.ia.Close()) }()
	if a.begin == asClient {
		ctx, cancel := context.WithTimeout(ctx, 2*atMost)
		defer cancel()
		defer context.AfterFunc(ctx, a.giveUp)() // for calls without a context
		a.errs.add(a.kind.client(ctx, a))
		return
	}
	if a.connect(ctx) != nil {
		return // a server may refuse
	}
	for _, s := range a.steps {
		a.step(s)
	}
	a.leave(ctx)
}

// giveUp ends all that the peer waits for.
func (a *actor) giveUp() { a.errs.add(a.ia.Close()) }

// dial is the provider's way to TCP, for a peer that resets it.
func (a *actor) dial(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err == nil {
		a.mu.Lock()
		a.tcp = append(a.tcp, c)
		a.mu.Unlock()
	}
	return c, err
}

// reset has TCP reset what the adapter has dialed.
func (a *actor) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.tcp {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
}

// startUp is how a start-up over TCP (MPA) begins.
const startUp = "MPA ID Req Frame\x40\x01\x00\x10"

// disturb is a peer that comes over TCP and goes in the middle of its start-up.
func (a *actor) disturb(ctx context.Context) {
	c, err := a.dial(ctx, a.addr)
	if err != nil {
		return // there may be no room
	}
	what := []byte(startUp)
	if a.begin == noise {
		what = text(uint8(a.depth), 100)
	}
	_, _ = c.Write(what[:min(len(what), 4*len(a.steps))])
	if a.deaf {
		a.wait(ctx, atMost/10)
	}
	if a.end == resets {
		a.reset()
	}
	_ = c.Close()
}

// connect dials. The server may refuse.
func (a *actor) connect(ctx context.Context) (err error) {
	a.news, a.owed = make(chan struct{}, 1), map[[sha256.Size]byte]int{}
	within := atMost
	if a.begin == givesUp {
		within = time.Duration(len(a.steps)) * time.Millisecond / 4
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	a.conn, err = a.ia.Dial(ctx, a.addr, dat.ConnConfig{
		Depth: a.depth, Setup: a.setup, OwnReceives: true, Attr: &ep.Attr{MaxRequestDTOs: mostRequests},
	})
	if err != nil {
		return err
	}
	if a.kind.window != nil {
		a.window, _ = a.kind.window(a.conn.Private()) // without one the peer writes to nowhere
	}
	if !a.deaf {
		a.heard.Go(a.hear)
	}
	return nil
}

// mostRequests is how many requests a peer may have outstanding.
const mostRequests = 256

func (a *actor) setup(c *dat.Conn) (private []byte, err error) {
	a.bytes, a.next = make([]byte, a.need()), a.sources()
	if a.own, err = c.Register(a.bytes, hw.LocalRead|hw.LocalWrite); err != nil {
		return nil, err
	}
	if a.lent, err = c.Register(slices.Concat(make([]byte, sinks), blocks()), hw.AllPrivileges|hw.RemoteAtomic); err != nil {
		return nil, err
	}
	for i := range a.depth {
		if err = a.receive(c, i); err != nil {
			return nil, err
		}
	}
	if a.kind.hello != nil {
		private = a.kind.hello(uint8(len(a.steps)), a.forServer())
	}
	switch n := len(private); a.private {
	case asClients:
	case damaged:
		if n > 0 {
			private[a.depth%n] ^= uint8(1 + a.depth)
		}
	case cut:
		private = private[:n/2]
	case random:
		private = text(uint8(a.depth), 8*a.depth%249)
	}
	return private, nil
}

// receive posts a receive.
func (a *actor) receive(c *dat.Conn, i int) error {
	return c.Endpoint.PostRecv(uint64(i), hw.Default, a.own.Segment(i*receive, receive))
}

// forServer is the memory that requests name.
func (a *actor) forServer() mem.RemoteSegment { return a.lent.Remote(0, len(a.lent.Bytes())) }

// hear takes events until the connection is closed.
func (a *actor) hear() {
	for ev := range a.conn.Events() {
		if ev.Number == event.Closed {
			return
		}
		if ev.Number == event.DTOCompletion && ev.Op == hw.OpRecv && ev.Status == hw.StatusSuccess {
			i := int(ev.Cookie)
			a.account(a.bytes[i*receive:][:ev.Length])
			_ = a.receive(a.conn, i) // the connection may have ended
		}
		select {
		case a.news <- struct{}{}:
		default: // there is a value
		}
	}
}

// account complains of an echo that nobody has called for.
func (a *actor) account(message []byte) {
	if a.kind.name != "connecho" {
		return
	}
	sum := sha256.Sum256(message)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.owed[sum]--; a.owed[sum] < 0 {
		a.errs.add(fmt.Errorf("an echo of %d bytes that were not sent, or not so often", len(message)))
	}
}

func (a *actor) owe(message []byte, times int) {
	a.mu.Lock()
	a.owed[sha256.Sum256(message)] += times
	a.mu.Unlock()
}

// wait waits until something comes, or no longer than that.
func (a *actor) wait(ctx context.Context, atMost time.Duration) {
	late := time.NewTimer(atMost)
	defer late.Stop()
	select {
	case <-a.news: // nil, and so for ever, where nothing can come
	case <-late.C:
	case <-ctx.Done():
	}
}

// step posts what a step says. What the library refuses, and what ends the connection, is the
// program's luck.
func (a *actor) step(s step) {
	if s.await {
		a.wait(context.Background(), shortly)
		return
	}
	dtos := a.requests(s)
	if n, err := a.conn.Endpoint.PostBatch(dtos); err != nil && n == 0 {
		for i := range dtos {
			dtos[i].Flags = hw.Default // those of the step may not go with its operation
		}
		_, _ = a.conn.Endpoint.PostBatch(dtos)
	}
}

// requests are the requests of a step.
func (a *actor) requests(s step) (dtos []ep.DTO) {
	d := ep.DTO{Op: s.op, Flags: s.flags, Immediate: uint32(s.seed), Remote: a.target(s, s.size)}
	switch s.op {
	case hw.OpSend, hw.OpSendInvalidate:
		message := contents(s, a.kind.request, asked{n: a.asked, seed: s.seed, size: s.size, memory: a.forServer()})
		a.asked++
		d.Segment = a.put(message)
		d.Immediate = d.Remote.Context
		a.owe(message, 2*s.count) // twice, as step may post them again
	case hw.OpWrite, hw.OpWriteImm:
		d.Segment = a.put(text(s.seed, s.size))
	case hw.OpRead:
		d.Segment = a.lent.Segment(0, s.size)
	default: // atomics
		d.Segment, d.Operand, d.Compare = a.lent.Segment(0, 8), uint64(s.seed), uint64(s.size)
		d.Remote.Len = 8
	}
	for range s.count {
		dtos = append(dtos, d)
	}
	return dtos
}

// target is n bytes of the server's memory, or of memory that is not the peer's to touch.
func (a *actor) target(s step, n int) mem.RemoteSegment {
	to := mem.RemoteSegment{Addr: a.window.Addr + uint64(s.at), Len: uint32(n), Context: a.window.Context}
	if s.stranger {
		to.Addr += uint64(s.seed) << 12
		to.Context ^= uint32(s.seed&3) << 8
	}
	return to
}

// put puts bytes into the peer's own memory.
func (a *actor) put(b []byte) mem.Segment {
	at := a.next
	copy(a.bytes[at:], b)
	a.next += (len(b) + 7) &^ 7
	return a.own.Segment(at, len(b))
}

// leave ends the connection in the peer's way.
func (a *actor) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	switch a.end {
	case inOrder:
		_ = a.conn.Shutdown(ctx) // the server may have ended it
	case abruptly:
		_ = a.conn.Endpoint.Disconnect(ep.Abrupt)
	case vanishes:
		a.errs.add(a.ia.Close())
	case resets:
		a.reset()
	case halfWay:
		_ = a.conn.Endpoint.Disconnect(ep.Graceful)
	case lastWords:
		if n := len(a.steps); n > 0 {
			a.step(a.steps[n-1])
		}
	case closes:
	}
	_ = a.conn.Close() // it is an error when the adapter has gone
	a.heard.Wait()
}

// streamWindow is the ring that the server of streams gave.
func streamWindow(private []byte) (mem.RemoteSegment, error) {
	if len(private) < streamHeader {
		return mem.RemoteSegment{}, errors.New("no hello of package stream")
	}
	return ringOf(private[8:]), nil
}
