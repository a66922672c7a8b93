package runtime

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/hw/sim"
	"godat/mem"
)

func TestAPolledDeviceDeliversEverythingInOrder(t *testing.T) {
	for _, procs := range []int{1, 2, 4} {
		for name, mode := range pollers {
			t.Run(fmt.Sprintf("%s/procs=%d", name, procs), func(t *testing.T) {
				defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(procs))
				s := sim.New(sim.Config{Seed: 7})
				ia := open(t, "sim", WithProvider(s), WithPoller(mode.cfg))
				var wg sync.WaitGroup
				for i := range 3 {
					p := connect(t, ia, mode.events(256))
					p.establish(t)
					wg.Go(func() { p.exchange(t, 400, uint64(i)) })
				}
				wg.Wait()
				require.NoError(t, ia.Close())
				assert.Empty(t, s.Violations())
			})
		}
	}
}

// counted is a provider that keeps the device that it opened last.
type counted struct {
	*sim.Provider
	dev *sim.Device
}

func (c *counted) Open(cfg hw.OpenConfig) (hw.Device, error) {
	dev, err := c.Provider.Open(cfg)
	if err == nil {
		c.dev = dev.(*sim.Device)
	}
	return dev, err
}

// A call of a device's driver costs more than all else that a post does.
func TestEachPostOfTheProgramIsOneCallOfTheDevice(t *testing.T) {
	for name, mode := range pollers {
		t.Run(name, func(t *testing.T) {
			s := &counted{Provider: sim.New(sim.Config{})}
			ia := open(t, "sim", WithProvider(s), WithPoller(mode.cfg))
			p := connect(t, ia, mode.events(256))
			p.establish(t)
			seg := p.mem.Segment(0, 8)
			batch := func(op hw.Op) (list []ep.DTO) {
				for i := range 8 {
					list = append(list, ep.DTO{Op: op, Cookie: uint64(i), Segment: seg, Remote: p.mem.Remote(64, 8)})
				}
				return list
			}
			all := func(_ int, err error) error { return err }
			for _, e := range []*ep.Endpoint{p.a, p.b} {
				p.idle(t, e, func() uint64 { return s.dev.Calls().PostRecvs })
			}
			for what, c := range map[string]struct {
				post   func() error
				events int
				want   sim.Calls
			}{
				"a receive":          {func() error { return p.b.PostRecv(1, hw.Default, seg) }, 0, sim.Calls{PostRecvs: 1, Recvs: 1}},
				"8 receives":         {func() error { return all(p.b.PostRecvBatch(batch(hw.OpRecv))) }, 0, sim.Calls{PostRecvs: 1, Recvs: 8}},
				"a write":            {func() error { return p.a.PostRDMAWrite(1, hw.Default, p.mem.Remote(64, 8), seg) }, 1, sim.Calls{PostSends: 1, Sends: 1}},
				"a read":             {func() error { return p.a.PostRDMARead(1, hw.Default, p.mem.Remote(64, 8), seg) }, 1, sim.Calls{PostSends: 1, Sends: 1}},
				"8 writes":           {func() error { return all(p.a.PostBatch(batch(hw.OpWrite))) }, 8, sim.Calls{PostSends: 1, Sends: 8}},
				"8 reads":            {func() error { return all(p.a.PostBatch(batch(hw.OpRead))) }, 8, sim.Calls{PostSends: 1, Sends: 8}},
				"a suppressed write": {func() error { return p.a.PostRDMAWrite(1, hw.Suppress, p.mem.Remote(64, 8), seg) }, 0, sim.Calls{PostSends: 1, Sends: 1}},
			} {
				before := s.dev.Calls()
				require.NoError(t, c.post())
				for range c.events {
					require.Equal(t, hw.StatusSuccess, p.next(t).Status)
				}
				after := s.dev.Calls()
				got := sim.Calls{
					PostSends: after.PostSends - before.PostSends, Sends: after.Sends - before.Sends,
					PostRecvs: after.PostRecvs - before.PostRecvs, Recvs: after.Recvs - before.Recvs,
				}
				assert.Equal(t, c.want, got, what)
			}
		})
	}
}

// idle waits until a post to the endpoint is executed at once. The goroutine that has
// announced the connection may still be at work on the endpoint, and execute it later.
func (p *pair) idle(t *testing.T, e *ep.Endpoint, executed func() uint64) {
	for n := executed() + 1; ; n++ {
		require.NoError(t, e.PostRecv(0, hw.Default, p.mem.Segment(0, 8)))
		if executed() == n {
			return
		}
		require.Eventually(t, func() bool { return executed() == n }, time.Minute, time.Millisecond)
	}
}

// When the dispatcher changes, the endpoint's completions go to other queues of the
// device, and its posted receives move along.
func TestAnEndpointOfAPolledDeviceIsModified(t *testing.T) {
	for _, cfg := range []PollerConfig{{}, {CPUs: allCPUs()}} {
		s := sim.New(sim.Config{Seed: 3})
		ia := open(t, "sim", WithProvider(s), WithPoller(cfg))
		p := connect(t, ia, channel(256))
		p.establish(t)
		other, err := ia.NewDispatcher(channel(64))
		require.NoError(t, err)
		for _, e := range []*ep.Endpoint{p.a, p.b} {
			require.NoError(t, e.Disconnect(ep.Abrupt))
		}
		for range 2 {
			require.Equal(t, event.Disconnected, (<-p.events.C()).Number)
		}
		for _, e := range []*ep.Endpoint{p.a, p.b} {
			require.NoError(t, e.Reset())
		}
		require.NoError(t, p.b.PostRecv(7, hw.Default, p.mem.Segment(0, 8)))
		require.NoError(t, p.b.Modify(ep.Param{
			Recv: other, Attr: ep.Attr{MaxRecvDTOs: 40},
		}, "Recv", "MaxRecvDTOs"))
		require.NoError(t, p.b.PostRecv(8, hw.Default, p.mem.Segment(8, 8)))
		rsp, err := ia.NewRSP(ep.RSPConfig{Endpoint: p.b, Dispatcher: p.events})
		require.NoError(t, err)
		require.NoError(t, p.a.Connect(ep.ConnectConfig{Addr: ia.Attr().Address, Qual: rsp.Qual()}))
		require.NoError(t, ep.RequestOf(<-p.events.C()).Accept(nil, nil))
		p.establish(t)
		for i := range 2 {
			require.NoError(t, p.a.PostSend(uint64(i), hw.Suppress, p.mem.Segment(64, 8)))
		}
		first := <-p.events.C()
		assert.Equal(t, uint64(7), first.Cookie, "it was posted when completions went there")
		assert.Equal(t, hw.StatusSuccess, first.Status)
		assert.Equal(t, uint64(8), (<-other.C()).Cookie)
		require.NoError(t, rsp.Close())
		require.NoError(t, ia.Close())
		assert.Empty(t, s.Violations())
	}
}

// exchange sends n messages from a to b, with pauses in which poller and deliverer fall
// asleep, and requires the completions of each side in order.
func (p *pair) exchange(t *testing.T, n int, seed uint64) {
	const depth = 8
	rng := rand.New(rand.NewPCG(seed, 1))
	seg := p.mem.Segment(0, 8)
	posted, sent, received := 0, 0, 0
	for received < n || sent < n {
		for posted < n && posted-received < depth && posted-sent < depth && rng.IntN(4) != 0 {
			if !assert.NoError(t, p.b.PostRecv(uint64(posted), hw.Default, seg)) ||
				!assert.NoError(t, p.a.PostSend(uint64(posted), hw.Default, seg)) {
				return
			}
			posted++
		}
		if posted == sent && posted == received {
			time.Sleep(time.Duration(rng.IntN(100)) * time.Microsecond)
			continue
		}
		ev := p.next(t)
		switch {
		case ev.Number != event.DTOCompletion || ev.Status != hw.StatusSuccess:
			assert.Failf(t, "unexpected", "%v", ev)
			return
		case ep.Of(ev) == p.a:
			assert.EqualValues(t, sent, ev.Cookie)
			sent++
		default:
			assert.EqualValues(t, received, ev.Cookie)
			received++
		}
	}
}

func TestAnAdapterClosesWhileConsumersPoll(t *testing.T) {
	for seed := range uint64(20) {
		s := sim.New(sim.Config{Seed: seed})
		ia := open(t, "sim", WithProvider(s))
		p := connect(t, ia, polledQueue(64))
		p.establish(t)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				var buf [4]event.Event
				var err error
				for err == nil {
					_, err = p.events.Dequeue(buf[:])
					goruntime.Gosched()
				}
				assert.ErrorIs(t, err, hw.ErrInvalidHandle)
			})
		}
		for i := range 8 {
			require.NoError(t, p.b.PostRecv(uint64(i), hw.Default, p.mem.Segment(0, 8)))
			require.NoError(t, p.a.PostSend(uint64(100+i), hw.Default, p.mem.Segment(0, 8)))
		}
		require.NoError(t, ia.Close())
		wg.Wait()
		assert.Empty(t, s.Violations())
	}
}

func TestEndpointsMayComeAndGoOnAPolledDevice(t *testing.T) {
	for name, mode := range pollers {
		t.Run(name, func(t *testing.T) {
			s := sim.New(sim.Config{Seed: 3})
			ia := open(t, "sim", WithProvider(s), WithPoller(mode.cfg))
			for i := range 40 {
				p := connect(t, ia, mode.events(64))
				p.establish(t)
				p.exchange(t, 5, uint64(i))
				require.NoError(t, p.a.Close())
				require.NoError(t, p.b.Close())
			}
			assert.Zero(t, ia.polling.Queues())
			require.NoError(t, ia.Close())
			assert.Empty(t, s.Violations())
		})
	}
}

func TestClosingAPolledAdapterFlushesWhatIsOutstanding(t *testing.T) {
	for seed := range uint64(20) {
		s := sim.New(sim.Config{Seed: seed})
		var cfg PollerConfig
		if seed%2 == 0 {
			cfg.CPUs = allCPUs()
		}
		ia := open(t, "sim", WithProvider(s), WithPoller(cfg))
		p := connect(t, ia, channel(64))
		p.establish(t)
		for i := range 8 {
			require.NoError(t, p.b.PostRecv(uint64(i), hw.Default, p.mem.Segment(0, 8)))
			require.NoError(t, p.a.PostSend(uint64(100+i), hw.Default, p.mem.Segment(0, 8)))
		}
		require.NoError(t, ia.Close())
		n := 0
		for ev := range p.events.C() {
			if ev.Number == event.DTOCompletion {
				n++
			}
		}
		assert.Equal(t, 16, n)
		assert.Empty(t, s.Violations())
	}
}

// descriptors counts the open descriptors of the process; 0 where the system does not
// tell.
func descriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

func TestNothingIsLeftAfterClose(t *testing.T) {
	providers := map[string]func() []Option{
		"loop": func() []Option { return nil },
	}
	events := map[string]func(int) evd.Config{"loop": channel}
	for name, mode := range pollers {
		name = "sim: " + name
		providers[name] = func() []Option {
			return []Option{WithProvider(sim.New(sim.Config{})), WithPoller(mode.cfg)}
		}
		events[name] = mode.events
	}
	for name, opts := range providers {
		t.Run(name, func(t *testing.T) {
			cycle := func() {
				device, _, _ := strings.Cut(name, ":")
				ia, err := Open(context.Background(), device, opts()...)
				require.NoError(t, err)
				p := connect(t, ia, events[name](64))
				p.establish(t)
				p.exchange(t, 3, 0)
				require.NoError(t, ia.Close())
				require.Equal(t, mem.Stats{Mapped: 1, MappedBytes: 4096}, ia.MemoryStats(), "what the program holds")
				p.mem.Bytes()[4095] = 1
				require.NoError(t, p.mem.Free())
				require.Zero(t, ia.MemoryStats())
			}
			cycle() // opens the network poller's own descriptors
			fds, now := descriptors(), goleak.IgnoreCurrent()
			for range 10 {
				cycle()
			}
			goleak.VerifyNone(t, now)
			assert.Equal(t, fds, descriptors(), "descriptors are left")
		})
	}
}
