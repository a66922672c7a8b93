package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// rig is two devices whose engines the test steps itself.
type rig struct {
	t    *testing.T
	p    *Provider
	a, b *host
}

// host is a device with a zone, a completion queue and its queue pairs.
type host struct {
	t      *testing.T
	dev    *Device
	zone   hw.Zone
	cqs    []hw.CQ // the first serves all queues without one of their own
	ends   []*end
	mem    []*region
	asyncs []hw.AsyncEvent
	polled []hw.WC // all completions
}

// end is a queue pair and the results of its requests.
type end struct {
	host   *host
	index  int
	qp     *queuePair
	sends  []result
	recvs  []result
	up     bool
	down   hw.Reason
	broken bool
	ended  int
}

// result is a request's completion; done is false before it.
type result struct {
	done   bool
	status hw.Status
}

func newRig(t *testing.T, cfg Config) *rig {
	cfg.manual = true
	r := &rig{t: t, p: New(cfg)}
	r.a, r.b = r.open("one"), r.open("two")
	t.Cleanup(r.close)
	return r
}

func (r *rig) open(name string) *host {
	h := &host{t: r.t}
	dev, err := r.p.Open(hw.OpenConfig{Device: name, Async: func(ev hw.AsyncEvent) { h.asyncs = append(h.asyncs, ev) }})
	require.NoError(r.t, err)
	h.dev = dev.(*Device)
	h.zone, err = h.dev.NewZone()
	require.NoError(r.t, err)
	h.newCQ(256)
	return h
}

// newCQ makes a completion queue, whose tag is its index in cqs.
func (h *host) newCQ(depth int) hw.CQ {
	cq, err := h.dev.NewCQ(hw.CQConfig{Depth: depth, Tag: uint32(len(h.cqs))})
	require.NoError(h.t, err)
	h.cqs = append(h.cqs, cq)
	return cq
}

// close ends every queue pair and checks that each request has completed.
func (r *rig) close() {
	hosts := []*host{r.a, r.b}
	for _, h := range hosts {
		for _, e := range h.ends {
			if !e.broken {
				e.breakNow(false)
			}
		}
	}
	r.settle()
	for _, h := range hosts {
		for _, e := range h.ends {
			assert.Equal(r.t, 2, e.ended, "the queues of queue pair %d end once each", e.index)
			assert.NotContains(r.t, append(e.sends, e.recvs...), result{}, "a request has not completed")
			require.NoError(r.t, e.qp.Close())
		}
		for _, g := range h.mem {
			require.NoError(r.t, g.Deregister())
		}
		for _, cq := range h.cqs {
			require.NoError(r.t, cq.Close())
		}
		require.NoError(r.t, h.zone.Close())
		require.NoError(r.t, h.dev.Close())
	}
}

// settle steps both engines, and polls, until there is no work left.
func (r *rig) settle() {
	for busy := true; busy; {
		busy = r.turn()
	}
}

// turn steps each engine once and polls. It reports whether there was work.
func (r *rig) turn() bool {
	a, b := r.a.dev.stepOnce(), r.b.dev.stepOnce()
	n := r.a.poll() + r.b.poll()
	return a || b || n > 0
}

// work steps both engines until there is no work left, and does not poll.
func (r *rig) work() {
	for r.a.dev.stepOnce() || r.b.dev.stepOnce() {
	}
}

// poll takes one batch of the device's completions.
func (h *host) poll() int {
	var wcs [16]hw.WC
	n := h.dev.Poll(wcs[:])
	for _, wc := range wcs[:n] {
		h.take(wc)
	}
	return n
}

// A request's id holds its queue pair, its queue and its index there.
const (
	idRecv = 1 << 31
	idEnd  = 1 << 30
)

func (h *host) take(wc hw.WC) {
	h.polled = append(h.polled, wc)
	e, seq := h.ends[wc.ID>>32], int(wc.ID&(idEnd-1))
	results := e.sends
	if wc.ID&idRecv != 0 {
		results = e.recvs
	}
	if wc.ID&idEnd != 0 {
		e.ended++
		return
	}
	assert.False(h.t, results[seq].done, "request %#x completed twice", wc.ID)
	results[seq] = result{done: true, status: wc.Status}
}

const testDepth = 32

func (h *host) newEnd(set ...func(*hw.QPConfig)) *end {
	e := &end{host: h, index: len(h.ends)}
	id := uint64(e.index)<<32 | idEnd
	cfg := hw.QPConfig{
		Zone: h.zone, SendCQ: h.cqs[0], RecvCQ: h.cqs[0], Facts: e, SendEnd: id, RecvEnd: id | idRecv,
		SendDepth: testDepth, RecvDepth: testDepth, SendSegments: 4, RecvSegments: 4, ReadsIn: 8, ReadsOut: 8,
	}
	for _, f := range set {
		f(&cfg)
	}
	qp, err := h.dev.NewQP(cfg)
	require.NoError(h.t, err)
	e.qp = qp.(*queuePair)
	h.ends = append(h.ends, e)
	return e
}

// Established implements [hw.Facts].
func (e *end) Established(hw.ConnInfo) { e.up = true }

// Refused implements [hw.Facts].
func (e *end) Refused(hw.Reason, []byte, *hw.Cause) { e.host.t.Error("refused") }

// Down implements [hw.Facts].
func (e *end) Down(why hw.Reason, _ *hw.Cause) { e.down = why }

// request connects a to a listener of r.b's device and returns the request that arrives.
func (r *rig) request(a *end) (req hw.Request) {
	l, err := r.b.dev.Listen(hw.ListenConfig{OnRequest: func(q hw.Request) bool { req = q; return true }})
	require.NoError(r.t, err)
	require.NoError(r.t, a.qp.Connect(hw.ConnectConfig{Addr: "two", Qual: l.Qual()}))
	r.settle()
	require.NotNil(r.t, req)
	require.NoError(r.t, l.Close())
	return req
}

// pair makes two queue pairs and connects them.
func (r *rig) pair(set ...func(*hw.QPConfig)) (a, b *end) {
	a, b = r.a.newEnd(set...), r.b.newEnd(set...)
	require.NoError(r.t, r.request(a).Accept(b.qp, nil))
	r.settle()
	require.True(r.t, a.up && b.up)
	return a, b
}

// post makes requests signaled, posts them, and notes that each must complete.
func (e *end) post(wrs ...hw.SendWR) {
	e.host.t.Helper()
	for i := range wrs {
		wrs[i].ID = uint64(e.index)<<32 | uint64(len(e.sends))
		wrs[i].Flags |= hw.WRSignaled
		e.sends = append(e.sends, result{})
	}
	_, err := e.qp.PostSend(wrs)
	require.NoError(e.host.t, err)
}

func (e *end) recv() {
	e.host.t.Helper()
	id := uint64(e.index)<<32 | idRecv | uint64(len(e.recvs))
	e.recvs = append(e.recvs, result{})
	_, err := e.qp.PostRecv([]hw.RecvWR{{ID: id}})
	require.NoError(e.host.t, err)
}

func (e *end) breakNow(orderly bool) {
	e.broken = true
	e.qp.Break(orderly)
}

// register registers n bytes with all privileges, until the test ends.
func (h *host) register(n int) (*region, hw.SGE) {
	mr, err := h.dev.Register(h.zone, make([]byte, n), hw.AllPrivileges)
	require.NoError(h.t, err)
	g := mr.(*region)
	h.mem = append(h.mem, g)
	return g, hw.SGE{Addr: g.base, Len: uint32(n), LKey: g.LKey()}
}

func send(sgl ...hw.SGE) hw.SendWR { return hw.SendWR{Op: hw.OpSend, SGL: sgl} }

func remote(op hw.Op, far *region, near hw.SGE) hw.SendWR {
	return hw.SendWR{Op: op, SGL: []hw.SGE{near}, RKey: far.RKey(), RemoteAddr: far.base}
}

func reads(n int) func(*hw.QPConfig) {
	return func(c *hw.QPConfig) { c.ReadsIn, c.ReadsOut = n, n }
}

// receivesTo makes a queue pair's receives complete into cq.
func receivesTo(cq hw.CQ) func(*hw.QPConfig) { return func(c *hw.QPConfig) { c.RecvCQ = cq } }

// patient makes sends wait for a receive longer than any test runs.
func patient(c *hw.QPConfig) { c.NotReady = time.Hour }
