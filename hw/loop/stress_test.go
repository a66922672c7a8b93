package loop

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// ledger is a sink that counts its completions and checks their order. The ids of a
// queue are 1, 2, 3...; signaled says which of them must complete visibly when they
// succeed.
type ledger struct {
	t        *testing.T
	name     string
	signaled func(id uint64) bool
	last     uint64 // the id that completed last; the sink's
	failed   bool
	inside   atomic.Bool

	done  atomic.Uint64 // last, for the owner
	bad   atomic.Bool
	ended atomic.Bool
}

func (l *ledger) Complete(wcs []hw.WC) {
	if !l.inside.CompareAndSwap(false, true) {
		l.t.Errorf("%s: two goroutines complete at once", l.name)
	}
	over := l.ended.Load()
	for _, wc := range wcs {
		switch {
		case over:
			l.t.Errorf("%s: %v after the end", l.name, wc)
		case wc.Op == hw.OpEnd:
			over = true
			continue
		case wc.ID <= l.last:
			l.t.Errorf("%s: %d after %d", l.name, wc.ID, l.last)
		}
		for id := l.last + 1; id < wc.ID; id++ {
			if l.failed || l.signaled(id) {
				l.t.Errorf("%s: no completion of %d", l.name, id)
			}
		}
		switch wc.Status {
		case hw.StatusSuccess:
			if l.failed {
				l.t.Errorf("%s: %d succeeds after a failure", l.name, wc.ID)
			}
			if !l.signaled(wc.ID) {
				l.t.Errorf("%s: %d was not to be heard of", l.name, wc.ID)
			}
		default:
			l.failed = true
			l.bad.Store(true)
		}
		l.last = wc.ID
		l.done.Store(wc.ID)
	}
	l.inside.Store(false)
	if over {
		l.ended.Store(true) // last: its owner may begin another life
	}
}

// settle checks the counts when the queue has ended.
func (l *ledger) settle(posted uint64) {
	for id := l.last + 1; id <= posted; id++ {
		if l.failed || l.signaled(id) {
			l.t.Errorf("%s: no completion of %d", l.name, id)
		}
	}
}

// actor owns a queue pair and makes random calls on it, within the contract.
type actor struct {
	t            *testing.T
	rnd          *rand.Rand
	qp           hw.QP
	facts        *facts
	sends, recvs *ledger
	depth        uint64
	slots        []hw.SGE // memory for one request each: depth to send, depth to receive
	source       hw.SGE   // source of its writes, too long for a poster
	target       uint64   // address that it writes to, in the peer's memory after the swap
	rkey         uint32

	sent, received uint64 // ids posted
	breaksAt       uint64 // sends after which it breaks
	orderly        bool
}

func everyThird(id uint64) bool { return id%3 == 0 }

func always(uint64) bool { return true }

func newActor(t *testing.T, name string, dev hw.Device, seed uint64) (*actor, func()) {
	const depth, size, long = 16, 8, handover + 100
	a := &actor{
		t: t, rnd: rand.New(rand.NewPCG(seed, 1)), depth: depth, facts: &facts{t: t},
		sends: &ledger{t: t, name: name + " sends", signaled: everyThird},
		recvs: &ledger{t: t, name: name + " receives", signaled: always},
	}
	zone, err := dev.NewZone()
	require.NoError(t, err)
	mem := make([]byte, 2*depth*size+2*long)
	region, err := dev.Register(zone, mem, all)
	require.NoError(t, err)
	a.rkey = region.RKey()
	base := dev.(*device).Keys.Lookup(region.LKey()).Addr
	for i := range 2 * depth {
		a.slots = append(a.slots, hw.SGE{Addr: base + uint64(i*size), Len: size, LKey: region.LKey()})
	}
	a.source = hw.SGE{Addr: base + 2*depth*size, Len: long, LKey: region.LKey()}
	a.target = a.source.Addr + long
	a.qp, err = dev.NewQP(hw.QPConfig{
		Zone: zone, SendSink: a.sends, RecvSink: a.recvs, Facts: a.facts,
		SendDepth: depth, RecvDepth: depth, SendSegments: 1, RecvSegments: 1, ReadsIn: 1, ReadsOut: 1,
		NotReady: time.Hour,
	})
	require.NoError(t, err)
	return a, func() {
		require.NoError(t, a.qp.Close())
		require.NoError(t, region.Deregister())
		require.NoError(t, zone.Close())
	}
}

// run posts until the actor breaks the connection or the peer has broken it.
func (a *actor) run() {
	for began := time.Now(); a.sent < a.breaksAt && a.facts.isDown() == 0; {
		if time.Since(began) > time.Minute {
			p := a.qp.(*queuePair).out.Load()
			a.t.Errorf("%s: stuck: sent %d, done %d, received %d, done %d; attention %b, token %x",
				a.sends.name, a.sent, a.sends.done.Load(), a.received, a.recvs.done.Load(), p.attention.Load(), p.token.Load())
			break
		}
		switch a.rnd.IntN(8) {
		case 0, 1, 2:
			a.postSends()
		case 3, 4, 5:
			a.postRecvs()
		case 6:
			runtime.Gosched()
		default:
			if a.rnd.IntN(200) == 0 {
				a.qp.Drain()
				a.breaksAt = 0 // it posts no more
			}
		}
	}
	a.qp.Break(a.orderly)
}

func (a *actor) postSends() {
	done := a.sends.done.Load()
	room := a.depth - (a.sent - done)
	var wrs []hw.SendWR
	for range min(room, 1+a.rnd.Uint64N(3)) {
		a.sent++
		w := hw.SendWR{ID: a.sent, Op: hw.OpSend, SGL: a.slots[a.sent%a.depth:][:1]}
		if a.rnd.IntN(3) == 0 {
			w.Op, w.RKey = hw.OpWrite, a.rkey
			w.RemoteAddr = a.target
			if a.rnd.IntN(16) == 0 {
				w.SGL = []hw.SGE{a.source}
			}
		}
		if everyThird(a.sent) {
			w.Flags = hw.WRSignaled
		}
		wrs = append(wrs, w)
	}
	n, err := a.qp.PostSend(wrs)
	assert.NoError(a.t, err)
	assert.Len(a.t, wrs, n)
}

func (a *actor) postRecvs() {
	done := a.recvs.done.Load()
	room := a.depth - (a.received - done)
	var wrs []hw.RecvWR
	for range min(room, 1+a.rnd.Uint64N(3)) {
		a.received++
		wrs = append(wrs, hw.RecvWR{ID: a.received, SGL: a.slots[a.depth+a.received%a.depth:][:1]})
	}
	n, err := a.qp.PostRecv(wrs)
	assert.NoError(a.t, err)
	assert.Len(a.t, wrs, n)
}

// life connects two actors, runs both until each has broken the connection, and checks
// that everything ended as it must.
func (a *actor) life(b *actor) {
	x, y := a.qp.(*queuePair), b.qp.(*queuePair)
	require.NoError(a.t, x.conn.Attempt("test"))
	require.NoError(a.t, y.conn.Attempt("test"))
	var wg sync.WaitGroup
	wg.Go(func() { require.True(a.t, join(x.conn, y.conn, nil)); b.run() })
	wg.Go(func() {
		spinUntil(a.t, func() bool { return a.facts.established() != nil })
		a.run()
	})
	wg.Wait()
	for _, s := range []*actor{a, b} {
		ended := func() bool { return s.sends.ended.Load() && s.recvs.ended.Load() }
		require.Eventually(s.t, ended, time.Minute, 50*time.Microsecond, "a queue did not end: a wake-up was lost")
		s.sends.settle(s.sent)
		s.recvs.settle(s.received)
		require.NoError(s.t, s.qp.Reset())
		s.sent, s.received = 0, 0
		s.facts.forget()
		for _, l := range []*ledger{s.sends, s.recvs} {
			l.last, l.failed = 0, false
			l.done.Store(0)
			l.bad.Store(false)
			l.ended.Store(false)
		}
	}
}

// Two owners post to each other, from both sides at once, and one of them or
// both break the connection at any time: every request completes once and in
// order, every queue ends once, and nothing hangs.
func TestOwnersThatPostAndBreakAtAnyTimeLoseNothing(t *testing.T) {
	for _, procs := range []int{1, 2, 8} {
		if t.Failed() {
			return
		}
		t.Run(fmt.Sprintf("procs=%d", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			rnd := rand.New(rand.NewPCG(seed, 0))
			dev, other := open(t, uniqueName()), open(t, uniqueName())
			a, closeA := newActor(t, "a", dev, rnd.Uint64())
			defer closeA()
			b, closeB := newActor(t, "b", other, rnd.Uint64())
			defer closeB()
			a.target, b.target = b.target, a.target
			a.rkey, b.rkey = b.rkey, a.rkey
			for range short(200) {
				for _, s := range []*actor{a, b} {
					s.breaksAt, s.orderly = 1+rnd.Uint64N(600), rnd.IntN(2) == 0
				}
				a.life(b)
				if t.Failed() {
					return
				}
			}
		})
	}
}

// A sender and a receiver race as closely as they can: the send is posted while the
// receive is, again and again. A lost kick leaves both waiting.
func TestASendMeetsALateReceive(t *testing.T) {
	for _, procs := range []int{1, 2, 8} {
		if t.Failed() {
			return
		}
		t.Run(fmt.Sprintf("procs=%d", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			var done atomic.Uint64
			dev := open(t, uniqueName())
			x := newSide(t, dev, func(cfg *hw.QPConfig) { cfg.SendSink = countSink{&done} })
			y := newSide(t, dev, func(cfg *hw.QPConfig) { cfg.RecvSink = discard{} })
			connect(t, x, y)
			rounds := short(4000)
			var wg sync.WaitGroup
			var posted atomic.Uint64
			const stuck = 10 * time.Second
			stop := time.AfterFunc(stuck, func() { posted.Store(2 * rounds); done.Store(2 * rounds) })
			defer stop.Stop()
			wg.Go(func() {
				for i := uint64(1); i <= rounds; i++ {
					for posted.Load() < i {
						runtime.Gosched()
					}
					y.recv(i)
				}
			})
			for i := uint64(1); i <= rounds; i++ {
				posted.Store(max(i, posted.Load()))
				stop.Reset(stuck)
				x.post(send(i))
				for done.Load() < i {
					runtime.Gosched()
				}
			}
			wg.Wait()
			assert.EqualValues(t, rounds, done.Load(), "a send and its receive did not find each other")
		})
	}
}

type countSink struct{ n *atomic.Uint64 }

func (s countSink) Complete(wcs []hw.WC) { s.n.Add(uint64(len(wcs))) }

type discard struct{}

func (discard) Complete([]hw.WC) {}

// Atomics from many queue pairs to one word: none is lost, and every old value is
// seen once.
func TestAtomicsAreAtomicAgainstEachOther(t *testing.T) {
	const actors, rounds = 4, 2000
	dev := open(t, uniqueName())
	target := newSide(t, dev, nil) // closed last: its zone is the others' too
	var mu sync.Mutex
	seen := make(map[uint64]bool)
	var wg sync.WaitGroup
	for range actors {
		a, b := newSide(t, dev, nil), newSide(t, dev, func(cfg *hw.QPConfig) { cfg.Zone = target.zone })
		connect(t, a, b)
		wg.Go(func() {
			w := wr(hw.OpFetchAdd, a, 0, 8, target.mr.RKey(), target.addr(0))
			w.Operand, w.Flags = 1, 0
			for range rounds {
				a.post(w)
				mu.Lock()
				seen[binary.NativeEndian.Uint64(a.mem)] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, actors*rounds, binary.NativeEndian.Uint64(target.mem))
	assert.Len(t, seen, actors*rounds)
}
