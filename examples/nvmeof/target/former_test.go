package target

import (
	"bytes"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
)

// network is a way to a target that keeps what hosts send while it is shut.
type network struct {
	net.Listener
	wg sync.WaitGroup

	mu   sync.Mutex
	shut bool
	ups  []*up
	down int // pieces that the target has sent
	sync.Cond
}

// up is what a host sends by a connection.
type up struct {
	kept []byte
	may  int // of these go though the way is shut
	over bool
}

// newNetwork passes connections to a target until the test ends.
func newNetwork(f *fixture) *network {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(f, err)
	n := &network{Listener: l}
	n.L = &n.mu
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
			u := new(up)
			n.change(func() { n.ups = append(n.ups, u) })
			n.wg.Go(func() { n.keep(u, from) })
			n.wg.Go(func() { n.bring(u, to) })
			n.wg.Go(func() { n.answer(to, from) })
		}
	})
	f.Cleanup(func() {
		n.set(false)
		l.Close()
		n.wg.Wait()
	})
	return n
}

func (n *network) change(what func()) {
	n.mu.Lock()
	what()
	n.mu.Unlock()
	n.Broadcast()
}

// set shuts or opens the way.
func (n *network) set(shut bool) { n.change(func() { n.shut = shut }) }

// kept is how many bytes the way keeps. The caller holds the lock.
func (n *network) kept() (all int) {
	for _, u := range n.ups {
		all += len(u.kept)
	}
	return all
}

// hears waits until the target has said something more. The caller holds the lock.
func (n *network) hears() {
	for before := n.down; n.down == before; {
		n.Wait()
	}
}

// lets lets all go that the way keeps now, and waits until the target says something.
func (n *network) lets() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, u := range n.ups {
		u.may = len(u.kept)
	}
	n.Broadcast()
	n.hears()
}

// keep takes what a host sends.
func (n *network) keep(u *up, from net.Conn) {
	b := make([]byte, 64<<10)
	for {
		k, err := from.Read(b)
		n.change(func() {
			u.kept = append(u.kept, b[:k]...)
			u.over = err != nil
		})
		if err != nil {
			return
		}
	}
}

// bring brings it to the target.
func (n *network) bring(u *up, to net.Conn) {
	defer to.Close()
	for {
		n.mu.Lock()
		for (n.shut && u.may == 0) || len(u.kept) == 0 && !u.over {
			n.Wait()
		}
		b := u.kept
		if n.shut {
			b = b[:u.may]
		}
		u.kept, u.may = u.kept[len(b):], 0
		n.mu.Unlock()
		if _, err := to.Write(b); err != nil || len(b) == 0 {
			return
		}
	}
}

// answer brings what the target sends.
func (n *network) answer(from, to net.Conn) {
	defer to.Close()
	b := make([]byte, 64<<10)
	for {
		k, err := from.Read(b)
		n.change(func() { n.down++ })
		if _, errTo := to.Write(b[:k]); err != nil || errTo != nil {
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

func TestAWriteOfAFormerConnectionDoesNotLandOnLaterOnes(t *testing.T) {
	for _, n := range []int{4096, 64 << 10} { // in the capsule, and not
		f := start(t, "iwarp", nil)
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

// held is a host of one I/O queue whose writes the network keeps, one by one.
type held struct {
	*network
	lost  *host.Controller
	disk  *host.Disk
	wrote chan error
}

// hold connects a host by a way that is shut then.
func hold(f *fixture) *held {
	h := &held{network: newNetwork(f), wrote: make(chan error, 2)}
	h.lost = connectBy(f, h.network, func(cfg *host.Config) { cfg.Queues, cfg.KeepAlive = 1, -1 })
	h.disk = f.disk(h.lost, 1)
	_, err := h.disk.WriteAt(make([]byte, 4096), 0)
	require.NoError(f, err)
	h.set(true)
	return h
}

// write has the host write a block that the network keeps.
func (h *held) write(value byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.kept()
	go func() {
		_, err := h.disk.WriteAt(bytes.Repeat([]byte{value}, 4096), 0) // in the capsule
		h.wrote <- err
	}()
	for h.kept() < before+4096 {
		h.Wait()
	}
}

// The first command of two that the network held comes, and then the host connects anew: the second one must not come.
func TestACommandThatTheNetworkHeldIsNoSignThatTheHostHasTheConnection(t *testing.T) {
	f := start(t, "iwarp", nil)
	h := hold(f)
	h.write(1)
	h.lets()
	require.NoError(t, <-h.wrote)
	h.write(2)
	anew := f.disk(f.connect(nil), 1)
	want := noise(4096)
	_, err := anew.WriteAt(want, 0)
	require.NoError(t, err)
	h.set(false)
	require.Error(t, <-h.wrote, "its connection has ended")
	got := make([]byte, 4096)
	_, err = anew.ReadAt(got, 0)
	require.NoError(t, err)
	assert.Equal(t, want, got, "the write of the former connection came after it")
}

func TestAHostsOtherConnectionsThatLiveStayWhenItConnectsAnew(t *testing.T) {
	for _, provider := range []string{"loop", "iwarp"} {
		f := start(t, provider, nil)
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
	f := start(t, "iwarp", nil)
	way := newNetwork(f)
	other := connectBy(f, way, func(cfg *host.Config) { cfg.ID = [16]byte{2} })
	way.set(true)
	f.connect(nil)
	way.set(false)
	_, err := f.disk(other, 1).WriteAt(noise(4096), 0)
	require.NoError(t, err)
}

// commandsCame is a queue by which n commands have come, all of them completed.
func commandsCame(n uint64) *queue {
	q := &queue{inquiries: make(chan inquiry), ended: make(chan struct{}), heard: now(), asked: nvme.ConnectRequest{SendSize: 3}}
	q.proofs.commands = n
	q.slots.requests = make([]ep.DTO, 0, 4)
	return q
}

// A transport may answer a read of no bytes wrongly while it sends.
func TestAHostIsReadFromWhenItIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, answers := commandsCame(1), make(chan *queue, 1)
		q.inquired(inquiry{to: answers})
		assert.Empty(t, q.slots.requests)
		i := <-q.inquiries
		q.heard = now()
		q.inquired(i)
		assert.Empty(t, q.slots.requests, "a command came since")
		q.inquired(<-q.inquiries)
		require.Len(t, q.slots.requests, 1)
		assert.Empty(t, answers)
		q.proofs.ended++
		q.proven()
		assert.Same(t, q, <-answers)
	})
}

// A host's transport may break when it is read from while it sends.
func TestAHostThatSendsAllTheTimeIsNotReadFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := commandsCame(1)
		i := inquiry{to: make(chan *queue, 1)}
		for begun := time.Now(); time.Since(begun) < proofTime; i = <-q.inquiries {
			q.heard = now()
			q.inquired(i)
			require.Empty(t, q.slots.requests)
		}
	})
}

func TestAHostThatSendsWhatItCouldNotHaveSentBeforeHasItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, answers := commandsCame(9), make(chan *queue, 1)
		q.outstanding = 2
		q.inquired(inquiry{to: answers}) // the host may have sent two more
		q.proofs.commands += 2
		q.show()
		assert.Empty(t, answers)
		q.proofs.commands++
		q.show()
		assert.Same(t, q, <-answers)
		q.inquired(<-q.inquiries)
		assert.Empty(t, q.slots.requests)
	})
}

func TestAHostThatAnswersTheReadOfACommandSinceHasItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, answers := commandsCame(1), make(chan *queue, 1)
		q.proofs.posted = 1
		q.inquired(inquiry{to: answers})
		q.proofs.posted++
		q.proofs.ended++
		q.show()
		assert.Empty(t, answers, "it was posted before")
		q.proofs.ended++
		q.show()
		assert.Same(t, q, <-answers)
		q.inquired(<-q.inquiries)
	})
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
			assert.Equal(t, depart, (<-q.inquiries).what, "it has not answered in time")
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
