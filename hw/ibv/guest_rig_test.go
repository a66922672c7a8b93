//go:build guest

package ibv

import (
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"godat/hw"
)

// patience bounds each wait of a test. It is long enough for a machine ten times slower
// than a quiet guest.
const patience = time.Minute

// bench is two connected queue pairs. Each has an opened device of its own, both of the
// guest's one device. The test's goroutine polls.
type bench struct {
	t    testing.TB
	ends [2]*benchEnd

	at      string // where the second end listens; empty: everywhere
	cqDepth int    // completion queue depth of ends that open makes; 0: room for all requests
}

type benchEnd struct {
	b    *bench
	dev  hw.Device
	poll hw.Polled
	zone hw.Zone
	cq   hw.CQ
	qp   hw.QP
	wcs  []hw.WC // polled, and not yet taken by completion or ended

	ahead int // successes that spin has polled beyond those it waited for

	regions []hw.MR // shut deregisters them
	async   chan hw.AsyncEvent
	held    chan struct{} // Established returns when it is closed; nil: at once

	mu      sync.Mutex
	info    *hw.ConnInfo
	refused hw.Reason
	down    hw.Reason
	cause   *hw.Cause // of down
}

func (e *benchEnd) Established(info hw.ConnInfo) {
	e.mu.Lock()
	e.info = &info
	e.mu.Unlock()
	if e.held != nil {
		<-e.held
	}
}

func (e *benchEnd) Refused(why hw.Reason, _ []byte, _ *hw.Cause) {
	e.mu.Lock()
	e.refused = why
	e.mu.Unlock()
}

func (e *benchEnd) Down(why hw.Reason, cause *hw.Cause) {
	e.mu.Lock()
	e.down, e.cause = why, cause
	e.mu.Unlock()
}

const (
	benchDepth = 32
	sendEnd    = 1 << 40
	recvEnd    = 1<<40 + 1
)

// newBench opens both ends and connects the first to the second. It calls seen, which
// may be nil, with the request's private data.
func newBench(t *testing.T, params map[string]string, change func(*hw.QPConfig), seen func([]byte)) *bench {
	t.Helper()
	b := &bench{t: t}
	for i := range b.ends {
		b.ends[i] = b.open(params, change)
	}
	b.connect(seen)
	t.Cleanup(b.close)
	return b
}

// connect connects the first end to the second, and calls seen as newBench says.
func (b *bench) connect(seen func([]byte)) {
	b.t.Helper()
	l := b.accept(seen)
	for _, e := range b.ends {
		e.until("Established", func() bool { return e.info != nil })
	}
	require.NoError(b.t, l.Close())
}

// accept dials the second end from the first, accepts there, and returns the listener.
func (b *bench) accept(seen func([]byte)) hw.Listener {
	t := b.t
	t.Helper()
	from, to := b.ends[0], b.ends[1]
	requests := make(chan hw.Request, 1)
	l, err := to.dev.Listen(hw.ListenConfig{Addr: b.at, OnRequest: func(r hw.Request) bool { requests <- r; return true }})
	require.NoError(t, err)
	require.NoError(t, from.qp.Connect(hw.ConnectConfig{Addr: to.dev.Attr().Address, Qual: l.Qual(), Private: []byte("hello")}))
	var req hw.Request
	from.until("the request", func() bool {
		require.Equal(t, hw.ReasonNone, from.refused)
		select {
		case req = <-requests:
			return true
		default:
			return false
		}
	})
	if seen != nil {
		data, _ := req.Private()
		seen(data)
	}
	require.NoError(t, req.Accept(to.qp, []byte("welcome")))
	return l
}

func (b *bench) open(params map[string]string, change func(*hw.QPConfig)) *benchEnd {
	b.t.Helper()
	e := &benchEnd{b: b, async: make(chan hw.AsyncEvent, 64)}
	dev, err := New().Open(hw.OpenConfig{
		Device: guestDevice(b.t), Params: params, Async: func(a hw.AsyncEvent) { e.async <- a },
	})
	require.NoError(b.t, err)
	e.dev, e.poll = dev, dev.(hw.Polled)
	e.zone, err = dev.NewZone()
	require.NoError(b.t, err)
	depth := 2*benchDepth + 2
	if b.cqDepth > 0 {
		depth = b.cqDepth
	}
	e.cq, err = e.poll.NewCQ(hw.CQConfig{Depth: depth})
	require.NoError(b.t, err)
	cfg := hw.QPConfig{
		Zone: e.zone, SendCQ: e.cq, RecvCQ: e.cq, Facts: e, SendDepth: benchDepth, RecvDepth: benchDepth,
		SendSegments: 2, RecvSegments: 2, ReadsIn: 4, ReadsOut: 4, SendEnd: sendEnd, RecvEnd: recvEnd,
	}
	if change != nil {
		change(&cfg)
	}
	e.qp, err = dev.NewQP(cfg)
	require.NoError(b.t, err)
	return e
}

func (b *bench) close() {
	for _, e := range b.ends {
		e.qp.Break(false)
	}
	for _, e := range b.ends {
		e.completion(sendEnd)
		e.completion(recvEnd)
		require.NoError(b.t, e.qp.Close())
		require.NoError(b.t, e.cq.Close())
		require.NoError(b.t, e.zone.Close())
		require.NoError(b.t, e.dev.Close())
	}
}

// until polls both ends until ok holds.
func (e *benchEnd) until(what string, ok func() bool) {
	e.b.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		for _, o := range e.b.ends {
			if o != nil {
				var wcs [16]hw.WC
				o.wcs = append(o.wcs, wcs[:o.poll.Poll(wcs[:])]...)
			}
		}
		e.mu.Lock()
		done := ok()
		e.mu.Unlock()
		if done {
			return
		}
		require.True(e.b.t, time.Now().Before(deadline), "waited in vain for %s", what)
		runtime.Gosched()
	}
}

// completion waits for the completion of a request.
func (e *benchEnd) completion(id uint64) (found hw.WC) {
	e.b.t.Helper()
	e.until("a completion", func() bool {
		for i, wc := range e.wcs {
			if wc.ID == id {
				found = wc
				e.wcs = append(e.wcs[:i], e.wcs[i+1:]...)
				return true
			}
		}
		return false
	})
	return found
}

// memory is registered memory of one end.
type memory struct {
	hw.MR
	buf []byte
}

func (e *benchEnd) memory(n int, priv hw.Privileges) *memory {
	e.b.t.Helper()
	m := &memory{buf: make([]byte, n)}
	var pin runtime.Pinner
	pin.Pin(unsafe.SliceData(m.buf))
	mr, err := e.dev.Register(e.zone, m.buf, priv)
	require.NoError(e.b.t, err)
	m.MR = mr
	e.b.t.Cleanup(func() { // runs before bench.close, whose Cleanup was registered earlier
		_ = mr.Deregister()
		pin.Unpin()
	})
	return m
}

func (m *memory) addr() uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(m.buf)))) }

func (m *memory) sge(off, n int) hw.SGE {
	return hw.SGE{Addr: m.addr() + uint64(off), Len: uint32(n), LKey: m.LKey()}
}

func (e *benchEnd) send(wrs ...hw.SendWR) {
	e.b.t.Helper()
	n, err := e.qp.PostSend(wrs)
	require.NoError(e.b.t, err)
	require.Len(e.b.t, wrs, n)
}

func (e *benchEnd) recv(id uint64, sgl ...hw.SGE) {
	e.b.t.Helper()
	n, err := e.qp.PostRecv([]hw.RecvWR{{ID: id, SGL: sgl}})
	require.NoError(e.b.t, err)
	require.Equal(e.b.t, 1, n)
}
