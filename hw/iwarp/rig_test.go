package iwarp

import (
	"maps"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"godat/hw"
)

// tester holds the methods of testing.TB that these tests need and that rapid.T has too.
type tester interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	FailNow()
}

// node is a device with a zone; a test makes its objects on it.
type node struct {
	tb   tester
	dev  hw.Device
	zone hw.Zone
}

func newNode(tb tester, p hw.Provider, params map[string]string) *node {
	tb.Helper()
	params = maps.Clone(params)
	if params == nil {
		params = make(map[string]string)
	}
	if _, ok := params["nudge"]; !ok { // scripts count what comes
		params["nudge"] = "0"
	}
	dev, err := p.Open(hw.OpenConfig{Device: "127.0.0.1", Params: params})
	require.NoError(tb, err)
	zone, err := dev.NewZone()
	require.NoError(tb, err)
	tb.Cleanup(func() {
		require.NoError(tb, zone.Close())
		require.NoError(tb, dev.Close())
	})
	return &node{tb: tb, dev: dev, zone: zone}
}

// memory is a registered buffer.
type memory struct {
	hw.MR
	buf  []byte
	base uint64
}

func (n *node) memory(size int, priv hw.Privileges) *memory {
	n.tb.Helper()
	buf := make([]byte, size)
	var pin runtime.Pinner
	pin.Pin(unsafe.SliceData(buf))
	n.tb.Cleanup(pin.Unpin)
	return n.registered(buf, priv)
}

// registered registers memory that stays in place.
func (n *node) registered(buf []byte, priv hw.Privileges) *memory {
	n.tb.Helper()
	mr, err := n.dev.Register(n.zone, buf, priv)
	require.NoError(n.tb, err)
	n.tb.Cleanup(func() {
		if err := mr.Deregister(); err != nil {
			require.ErrorIs(n.tb, err, hw.ErrInvalidHandle)
		}
	})
	return &memory{MR: mr, buf: buf, base: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(buf))))}
}

func (m *memory) sge(off, n int) hw.SGE {
	return hw.SGE{Addr: m.base + uint64(off), Len: uint32(n), LKey: m.LKey()}
}

// peer is a queue pair that records its completions and facts.
type peer struct {
	*node
	qp   hw.QP
	cfg  hw.QPConfig
	mu   sync.Mutex
	cond sync.Cond

	sends, recvs []hw.WC
	info         *hw.ConnInfo
	refused      hw.Reason
	cause        *hw.Cause // the cause of refused or down
	down         hw.Reason
	broken       bool
}

const (
	sendEnd = 1 << 60
	recvEnd = 1<<60 + 1
)

type recorder struct {
	p   *peer
	wcs *[]hw.WC
}

func (r recorder) Complete(wcs []hw.WC) {
	r.p.mu.Lock()
	*r.wcs = append(*r.wcs, wcs...)
	r.p.mu.Unlock()
	r.p.cond.Broadcast()
}

func (p *peer) Established(info hw.ConnInfo) { p.note(func() { p.info = &info }) }
func (p *peer) Refused(why hw.Reason, _ []byte, cause *hw.Cause) {
	p.note(func() { p.refused, p.cause = why, cause })
}

func (p *peer) Down(why hw.Reason, cause *hw.Cause) {
	p.note(func() { p.down, p.cause = why, cause })
}

func (p *peer) note(f func()) {
	p.mu.Lock()
	f()
	p.mu.Unlock()
	p.cond.Broadcast()
}

func (n *node) peer(change ...func(*hw.QPConfig)) *peer {
	n.tb.Helper()
	p := &peer{node: n}
	p.cond.L = &p.mu
	p.cfg = hw.QPConfig{
		Zone: n.zone, SendSink: recorder{p, &p.sends}, RecvSink: recorder{p, &p.recvs}, Facts: p,
		SendDepth: 64, RecvDepth: 64, SendSegments: 4, RecvSegments: 4, ReadsIn: 4, ReadsOut: 4,
		SendEnd: sendEnd, RecvEnd: recvEnd,
	}
	for _, f := range change {
		f(&p.cfg)
	}
	var err error
	p.qp, err = n.dev.NewQP(p.cfg)
	require.NoError(n.tb, err)
	n.tb.Cleanup(func() {
		p.end(false)
		require.NoError(n.tb, p.qp.Close())
	})
	return p
}

// patience is how long an awaited condition may take.
var patience = 30 * time.Second

// tick is the time between two looks at an awaited condition.
const tick = time.Millisecond

// await waits for a condition, and calls cond with the lock held.
func (p *peer) await(what string, cond func() bool) {
	p.tb.Helper()
	late := false
	timer := time.AfterFunc(patience, func() { p.note(func() { late = true }) })
	defer timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !cond() {
		if late {
			p.tb.Fatalf("no %s: sends %v, receives %v, refused %v, down %v", what, p.sends, p.recvs, p.refused, p.down)
		}
		p.cond.Wait()
	}
}

func (p *peer) awaitUp()   { p.tb.Helper(); p.await("connection", func() bool { return p.info != nil }) }
func (p *peer) awaitDown() { p.tb.Helper(); p.await("end", func() bool { return p.down != 0 }) }

func (p *peer) sent(i int) hw.WC {
	p.tb.Helper()
	return p.completion("send", &p.sends, i)
}

func (p *peer) received(i int) hw.WC {
	p.tb.Helper()
	return p.completion("receive", &p.recvs, i)
}

// completion waits for a queue's completion number i.
func (p *peer) completion(of string, queue *[]hw.WC, i int) (wc hw.WC) {
	p.tb.Helper()
	p.await("completion of a "+of, func() bool {
		if len(*queue) > i {
			wc = (*queue)[i]
			return true
		}
		return false
	})
	return wc
}

func (p *peer) post(wrs ...hw.SendWR) {
	p.tb.Helper()
	_, err := p.qp.PostSend(wrs)
	require.NoError(p.tb, err)
}

func (p *peer) recv(sgl ...hw.SGE) {
	p.tb.Helper()
	_, err := p.qp.PostRecv([]hw.RecvWR{{SGL: sgl}})
	require.NoError(p.tb, err)
}

// end breaks the connection and waits for the end of both queues.
func (p *peer) end(orderly bool) {
	p.tb.Helper()
	if !p.broken {
		p.broken = true
		p.qp.Break(orderly)
	}
	ended := func(wcs []hw.WC) bool { return len(wcs) > 0 && wcs[len(wcs)-1].Op == hw.OpEnd }
	p.await("end of the queues", func() bool { return ended(p.sends) && ended(p.recvs) })
}

// listen listens and sends requests to the channel.
func (n *node) listen(cfg hw.ListenConfig) (hw.Listener, chan hw.Request) {
	n.tb.Helper()
	requests := make(chan hw.Request, 64)
	cfg.OnRequest = func(r hw.Request) bool { requests <- r; return true }
	ln, err := n.dev.Listen(cfg)
	require.NoError(n.tb, err)
	n.tb.Cleanup(func() { _ = ln.Close() })
	return ln, requests
}

// join connects a to b.
func join(a, b *peer) {
	a.tb.Helper()
	ln, requests := b.listen(hw.ListenConfig{})
	require.NoError(a.tb, a.qp.Connect(hw.ConnectConfig{Addr: b.dev.Attr().Address, Qual: ln.Qual()}))
	require.NoError(a.tb, (<-requests).Accept(b.qp, nil))
	a.awaitUp()
	b.awaitUp()
}

// pair is two nodes with a connection.
func pair(tb tester, params map[string]string, change ...func(*hw.QPConfig)) (a, b *peer) {
	tb.Helper()
	p := New(Config{})
	a, b = newNode(tb, p, params).peer(change...), newNode(tb, p, params).peer(change...)
	join(a, b)
	return a, b
}
