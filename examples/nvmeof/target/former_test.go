package target

import (
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
)

// network is a way to a target that keeps what hosts send while it is shut.
type network struct {
	net.Listener
	wg sync.WaitGroup

	mu   sync.Mutex
	shut bool
	open sync.Cond
}

// newNetwork passes connections to a target until the test ends.
func newNetwork(f *fixture) *network {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(f, err)
	n := &network{Listener: l}
	n.open.L = &n.mu
	n.wg.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", f.target.Addr())
			if err != nil {
				from.Close()
				continue
			}
			n.wg.Go(func() { n.pass(from, to, true) })
			n.wg.Go(func() { n.pass(to, from, false) })
		}
	})
	f.Cleanup(func() {
		n.set(false)
		l.Close()
		n.wg.Wait()
	})
	return n
}

// set shuts or opens the way.
func (n *network) set(shut bool) {
	n.mu.Lock()
	n.shut = shut
	n.mu.Unlock()
	n.open.Broadcast()
}

func (n *network) pass(from, to net.Conn, up bool) {
	defer from.Close()
	defer to.Close()
	b := make([]byte, 64<<10)
	for {
		k, err := from.Read(b)
		n.mu.Lock()
		for up && n.shut {
			n.open.Wait()
		}
		n.mu.Unlock()
		if k != 0 {
			if _, err := to.Write(b[:k]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// connectBy connects a host by a network.
func connectBy(f *fixture, n *network, change func(*host.Config)) *host.Controller {
	return f.connect(func(cfg *host.Config) {
		cfg.Addr = n.Addr().String()
		if change != nil {
			change(cfg)
		}
	})
}

// asks has a target ask each queue.
func asks(cfg *Config) { cfg.recent = -1 }

func TestAWriteOfAFormerConnectionDoesNotLandOnLaterOnes(t *testing.T) {
	for _, n := range []int{4096, 64 << 10} { // in the capsule, and not
		f := start(t, "iwarp", asks)
		way := newNetwork(f)
		lost := connectBy(f, way, nil)
		d := f.disk(lost, 1)
		ghost := make([]byte, n)
		for i := range ghost {
			ghost[i] = 1
		}
		_, err := d.WriteAt(ghost, 0)
		require.NoError(t, err)
		way.set(true)
		gone := make(chan error, 1)
		go func() {
			cmd := d.Command(nvme.IOWrite)
			cmd.SetRange(0, uint32(n/d.BlockSize()))
			_, err := d.Do(f.within(), cmd, ghost)
			gone <- err
		}()
		anew := f.disk(f.connect(nil), 1)
		want := noise(n)
		_, err = anew.WriteAt(want, 0)
		require.NoError(t, err)
		way.set(false)
		require.Error(t, <-gone, "its connection has ended")
		require.NoError(t, lost.Close())
		got := make([]byte, n)
		_, err = anew.ReadAt(got, 0)
		require.NoError(t, err)
		assert.Equal(t, want, got, "the write of the former connection came after it")
	}
}

func TestAHostsOtherConnectionsThatLiveStayWhenItConnectsAnew(t *testing.T) {
	for _, provider := range []string{"loop", "iwarp"} {
		f := start(t, provider, asks)
		first := f.connect(nil)
		second := f.connect(nil) // asks the first, which says nothing
		for _, c := range []*host.Controller{first, second} {
			_, err := f.disk(c, 1).WriteAt(noise(4096), 0)
			require.NoError(f, err)
		}
		assert.Equal(f, 2, f.target.Associations())
	}
}

func TestASilentConnectionOfAnotherHostStays(t *testing.T) {
	f := start(t, "iwarp", asks)
	way := newNetwork(f)
	other := connectBy(f, way, func(cfg *host.Config) { cfg.ID = [16]byte{2} })
	way.set(true)
	f.connect(nil)
	way.set(false)
	_, err := f.disk(other, 1).WriteAt(noise(4096), 0)
	require.NoError(t, err)
}

// A transport may answer a read of no bytes wrongly while it sends.
func TestAConnectionByWhichCommandsComeIsNotAsked(t *testing.T) {
	answers := make(chan *queue, 1)
	q := &queue{target: &Target{cfg: Config{recent: time.Hour}}, heard: now()}
	q.inquired(inquiry{to: answers})
	assert.Same(t, q, <-answers)
	assert.Empty(t, q.slots.requests)
}

// silentQueue is a queue whose goroutine is the test.
func silentQueue() *queue {
	return &queue{inquiries: make(chan inquiry), ended: make(chan struct{}), controller: new(controller)}
}

// pause makes the limit that a goroutine waits for one that is seen late.
func pause(l *limit) {
	synctest.Wait()
	l.due = time.Now().Add(-2 * paused)
	l.timer.Reset(0)
	synctest.Wait()
}

func TestATargetThatWasPausedGivesFormerConnectionsTheirTimeAgain(t *testing.T) {
	newFormer := func(q *queue) *former {
		connects := &queue{results: make(chan result, 1)}
		return &former{target: &Target{down: make(chan struct{})}, queues: []*queue{q}, connect: &command{q: connects, slot: 3}}
	}
	t.Run("to answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := silentQueue()
			f := newFormer(q)
			go f.run()
			answers := (<-q.inquiries).to
			pause(&f.limit)
			require.Empty(t, f.connect.q.results)
			answers <- q
			assert.Equal(t, result{3, nil}, <-f.connect.q.results)
		})
	})
	t.Run("to leave", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := silentQueue()
			f := newFormer(q)
			go f.run()
			<-q.inquiries
			assert.Nil(t, (<-q.inquiries).to, "it has not answered in time")
			pause(&f.limit)
			require.Empty(t, f.connect.q.results)
			close(q.ended)
			assert.Equal(t, result{3, nil}, <-f.connect.q.results)
		})
	})
	t.Run("not without a pause", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := silentQueue()
			f := newFormer(q)
			go f.run()
			<-q.inquiries
			<-q.inquiries
			assert.Equal(t, result{3, nvme.StatusError(nvme.ConnectControllerBusy)}, <-f.connect.q.results)
		})
	})
}

func TestATargetThatWasPausedWhileItDrainsGivesCommandsTheirTimeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &Target{over: make(chan struct{}), log: slog.New(slog.DiscardHandler)}
		drained, late := make(chan struct{}), newLimit(time.Second)
		go func() {
			<-target.over
			close(drained)
		}()
		go target.awaitDrained(drained, &late)
		pause(&late)
		require.False(t, isClosed(target.over))
		<-drained // when it is late once more
	})
}
