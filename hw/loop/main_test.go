package loop

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/hw"
	"godat/internal/token"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	sendEnd = 1 << 60
	recvEnd = 1<<60 + 1
)

// side is one queue pair with all that a test needs to know of it. Its memory is in the
// Go heap: the heap does not move objects, so the memory stays in place.
type side struct {
	t    testing.TB
	dev  hw.Device
	zone hw.Zone
	qp   hw.QP
	mr   hw.MR
	mem  []byte

	direct   bool         // post and recv try PostRun and RecvRun first
	received atomic.Int32 // receives posted by RecvRun

	sends, recvs recorder
	facts        facts
}

// recorder is a Sink that keeps the completions. It checks that one goroutine at a time
// calls it, and that a queue ends once, with nothing after it.
type recorder struct {
	t      testing.TB
	inside atomic.Bool
	hook   func([]hw.WC) // called first; it may be nil
	mu     sync.Mutex
	wcs    []hw.WC
}

func (r *recorder) Complete(wcs []hw.WC) {
	if !r.inside.CompareAndSwap(false, true) {
		r.t.Error("two goroutines complete at once")
	}
	if r.hook != nil {
		r.hook(wcs)
	}
	r.mu.Lock()
	if n := len(r.wcs); n > 0 && r.wcs[n-1].Op == hw.OpEnd {
		r.t.Errorf("%v after the end", wcs)
	}
	r.wcs = append(r.wcs, wcs...)
	r.inside.Store(false) // before others see an end, behind which another life may begin
	r.mu.Unlock()
}

func (r *recorder) all() []hw.WC {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.wcs)
}

func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wcs = nil
}

// wait waits for n completions.
func (r *recorder) wait(n int) []hw.WC {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return len(r.all()) >= n }, time.Minute, 100*time.Microsecond)
	wcs := r.all()
	require.Len(r.t, wcs, n)
	return wcs
}

func (r *recorder) ended() bool {
	wcs := r.all()
	return len(wcs) > 0 && wcs[len(wcs)-1].Op == hw.OpEnd
}

// facts is a Facts that keeps what it hears, and checks the order.
type facts struct {
	t     testing.TB
	onEst func()
	onOff func()

	mu       sync.Mutex
	est      *hw.ConnInfo
	refused  hw.Reason
	private  []byte
	down     hw.Reason
	nRefused int
	cause    *hw.Cause // of refused or down
}

func (f *facts) Established(info hw.ConnInfo) {
	f.mu.Lock()
	if f.est != nil || f.nRefused > 0 || f.down != 0 {
		f.t.Error("Established comes once and first")
	}
	f.est = &info
	f.mu.Unlock()
	if f.onEst != nil {
		f.onEst()
	}
}

func (f *facts) Refused(why hw.Reason, private []byte, cause *hw.Cause) {
	f.mu.Lock()
	if f.est != nil || f.nRefused > 0 {
		f.t.Error("Refused comes once, or Established")
	}
	f.nRefused++
	f.refused, f.private, f.cause = why, private, cause
	f.mu.Unlock()
	if f.onOff != nil {
		f.onOff()
	}
}

func (f *facts) Down(why hw.Reason, cause *hw.Cause) {
	f.mu.Lock()
	if f.est == nil || f.down != 0 {
		f.t.Error("Down comes once, after Established")
	}
	f.down, f.cause = why, cause
	f.mu.Unlock()
	if f.onOff != nil {
		f.onOff()
	}
}

func (f *facts) established() *hw.ConnInfo { f.mu.Lock(); defer f.mu.Unlock(); return f.est }
func (f *facts) isDown() hw.Reason         { f.mu.Lock(); defer f.mu.Unlock(); return f.down }

func (f *facts) isRefused() hw.Reason { f.mu.Lock(); defer f.mu.Unlock(); return f.refused }

func (f *facts) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.est, f.refused, f.private, f.down, f.nRefused = nil, 0, nil, 0, 0
}

const (
	memLen   = 1 << 20
	handover = 64 << 10 // the parameter of the tests' devices
	all      = hw.AllPrivileges | hw.RemoteAtomic
)

func open(t testing.TB, name string) hw.Device {
	return openWith(t, name, map[string]string{"handover": strconv.Itoa(handover)})
}

func openWith(t testing.TB, name string, params map[string]string) hw.Device {
	dev, err := New().Open(hw.OpenConfig{Device: name, Params: params})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

func newSide(t testing.TB, dev hw.Device, change func(*hw.QPConfig)) *side {
	s := &side{t: t, dev: dev, mem: make([]byte, memLen)}
	s.sends.t, s.recvs.t, s.facts.t = t, t, t
	var err error
	s.zone, err = dev.NewZone()
	require.NoError(t, err)
	s.mr, err = dev.Register(s.zone, s.mem, all)
	require.NoError(t, err)
	cfg := hw.QPConfig{
		Zone: s.zone, SendSink: &s.sends, RecvSink: &s.recvs, Facts: &s.facts,
		SendDepth: 64, RecvDepth: 64, SendSegments: 8, RecvSegments: 8, ReadsIn: 4, ReadsOut: 4,
		NotReady: time.Minute, SendEnd: sendEnd, RecvEnd: recvEnd,
	}
	if change != nil {
		change(&cfg)
	}
	s.qp, err = dev.NewQP(cfg)
	require.NoError(t, err)
	t.Cleanup(s.close)
	return s
}

// close breaks the queue pair, if the test has not, and frees everything.
func (s *side) close() {
	t := s.t
	if c := s.qp.(*queuePair).conn; c != nil { // not closed by the test
		s.qp.Break(false)
		require.Eventually(t, c.Ended, time.Minute, 100*time.Microsecond)
		require.NoError(t, s.qp.Close())
	}
	s.mr.Deregister() //nolint:errcheck // a test may have done it
	require.NoError(t, s.zone.Close())
}

// ended reports whether both sinks have their OpEnd. The queues count theirs before that.
func (s *side) ended() bool { return s.sends.ended() && s.recvs.ended() }

// reset begins a new life.
func (s *side) reset() {
	s.t.Helper()
	require.NoError(s.t, s.qp.Reset())
	s.sends.forget()
	s.recvs.forget()
	s.facts.forget()
}

// sge names part of the side's memory.
func (s *side) sge(off, n int) hw.SGE {
	return hw.SGE{Addr: s.addr(off), Len: uint32(n), LKey: s.mr.LKey()}
}

func (s *side) addr(off int) uint64 {
	return s.dev.(*device).Keys.Lookup(s.mr.LKey()).Addr + uint64(off)
}

func (s *side) post(wrs ...hw.SendWR) {
	s.t.Helper()
	if s.direct {
		wr := &wrs[0]
		if s.qp.(hw.Runner).PostRun(wr.Op, wr.Flags, wr.ID, &wr.SGL[0], 0, 1, wr.RKey, wr.RemoteAddr) == 1 {
			return
		}
	}
	n, err := s.qp.PostSend(wrs)
	require.NoError(s.t, err)
	require.Equal(s.t, len(wrs), n)
}

func (s *side) recv(id uint64, sgl ...hw.SGE) {
	s.t.Helper()
	if direct, ok := s.qp.(hw.Runner); ok && s.direct && direct.RecvRun(id, &sgl[0], 0, 1) == 1 {
		s.received.Add(1) // the locked instruction that Kick needs
		direct.Kick()
		return
	}
	n, err := s.qp.PostRecv([]hw.RecvWR{{ID: id, SGL: sgl}})
	require.NoError(s.t, err)
	require.Equal(s.t, 1, n)
}

func send(id uint64, sgl ...hw.SGE) hw.SendWR {
	return hw.SendWR{ID: id, Op: hw.OpSend, Flags: hw.WRSignaled, SGL: sgl}
}

var names atomic.Int64

func uniqueName() string { return "test" + strconv.FormatInt(names.Add(1), 10) }

// pair connects two queue pairs of one device.
func pair(t testing.TB, change func(*hw.QPConfig)) (a, b *side) {
	dev := open(t, uniqueName())
	a, b = newSide(t, dev, change), newSide(t, dev, change)
	connect(t, a, b)
	return a, b
}

func connect(t testing.TB, a, b *side) {
	t.Helper()
	ln, err := b.dev.Listen(hw.ListenConfig{OnRequest: func(r hw.Request) bool {
		require.NoError(t, r.Accept(b.qp, nil))
		return true
	}})
	require.NoError(t, err)
	require.NoError(t, a.qp.Connect(hw.ConnectConfig{Addr: b.dev.Attr().Address, Qual: ln.Qual()}))
	require.NotNil(t, a.facts.established())
	require.NotNil(t, b.facts.established())
	require.NoError(t, ln.Close())
}

// short is a number of rounds: n, or a tenth of it with -short.
func short(n uint64) uint64 {
	if testing.Short() {
		return n / 10
	}
	return n
}

// accesses returns how often an access of a pipe's holders has ended.
func accesses(p *pipe) uint64 {
	return p.token.Load() &^ (token.Held | token.Kicked | token.Parked)
}
