package target

import (
	"bytes"
	"fmt"
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
	"godat/hw/event"
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
func (n *network) lets() { n.letsGo(n.keeps()) }

// keeps is how many bytes the way keeps now of each connection.
func (n *network) keeps() (each []int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, u := range n.ups {
		each = append(each, len(u.kept))
	}
	return each
}

// letsGo is lets of what keeps has returned before, and of nothing that the host has sent since.
func (n *network) letsGo(each []int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, k := range each {
		n.ups[i].may = k
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

// A host that is never quiet, and whose commands are fewer than its entries.
func TestAHostThatSendsALittleAllTheTimeKeepsItsConnectionWhenItConnectsAnew(t *testing.T) {
	f := start(t, "iwarp", func(cfg *Config) { cfg.Depth = 128 })
	d := f.disk(f.connect(func(cfg *host.Config) { cfg.Queues, cfg.Depth = 1, 128 }), 1)
	first, over, sent := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			if _, err := d.ReadAt(make([]byte, 4096), 0); err != nil {
				sent <- err
				return
			}
			if n == 0 {
				close(first)
			}
			select {
			case <-tick.C:
			case <-over:
				sent <- nil
				return
			}
		}
	}()
	<-first
	f.connect(nil)
	close(over)
	require.NoError(t, <-sent)
	assert.Equal(t, 2, f.target.Associations())
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

// takes is a turn of the queue's goroutine that takes an inquiry.
func (q *queue) takes(i inquiry) {
	q.inquired(i)
	q.prove()
}

// comes is one that takes a command, which is completed at once.
func (q *queue) comes() {
	q.proofs.commands++
	q.heard = now()
	q.prove()
}

// A transport may answer a read of no bytes wrongly while it sends.
func TestAHostIsReadFromWhenItIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, answers, begun := commandsCame(1), make(chan *queue, 1), time.Now()
		q.takes(inquiry{to: answers})
		for len(q.slots.requests) == 0 {
			q.takes(<-q.inquiries)
		}
		assert.GreaterOrEqual(t, time.Since(begun), quietTime)
		assert.Less(t, time.Since(begun), proofTime*2/3)
		assert.Empty(t, answers)
		q.proofs.ended++
		q.prove()
		assert.Same(t, q, <-answers)
	})
}

// A look may come before what came while this process was paused.
func TestAHostThatOneLookFindsQuietIsNotReadFromWhenACommandComesBeforeTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, answers := commandsCame(1), make(chan *queue, 1)
		for range 2 {
			time.Sleep(time.Hour)
			q.takes(inquiry{to: answers})
			next := <-q.inquiries
			q.comes()
			q.takes(next)
			require.Empty(t, q.slots.requests)
			for len(q.slots.requests) == 0 {
				q.takes(<-q.inquiries)
			}
			q.slots.requests = q.slots.requests[:0]
			q.proofs.ended++
			q.prove()
			<-answers
		}
	})
}

func TestAHostIsNotReadFromWhileItsCommandsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := commandsCame(1)
		came := make(chan event.Event, 1)
		q.in.Events = came
		time.Sleep(time.Hour)
		q.takes(inquiry{to: make(chan *queue, 1)})
		came <- event.Event{}
		q.takes(<-q.inquiries)
		require.Empty(t, q.slots.requests)
		<-came // and it was no command
		q.prove()
		assert.Len(t, q.slots.requests, 1)
	})
}

// A host's transport may break when it is read from while it sends.
func TestAHostThatSendsAllTheTimeIsNotReadFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := commandsCame(1)
		i := inquiry{to: make(chan *queue, 1)}
		for begun := time.Now(); time.Since(begun) < 2*heardTime; i = <-q.inquiries {
			q.heard = now()
			q.takes(i)
			require.Empty(t, q.slots.requests)
		}
	})
}

func TestAHostThatSendsWhatItCouldNotHaveSentBeforeHasItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, answers := commandsCame(9), make(chan *queue, 1)
		q.outstanding = 2
		q.takes(inquiry{to: answers}) // the host may have sent two more
		q.comes()
		q.comes()
		assert.Empty(t, answers)
		q.comes()
		assert.Same(t, q, <-answers)
		q.takes(<-q.inquiries)
		assert.Empty(t, q.slots.requests)
	})
}

func TestAHostThatAnswersTheReadOfACommandSinceHasItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, answers := commandsCame(1), make(chan *queue, 1)
		q.proofs.posted = 1
		q.takes(inquiry{to: answers})
		q.proofs.posted++
		q.proofs.ended++
		q.prove()
		assert.Empty(t, answers, "it was posted before")
		q.proofs.ended++
		q.prove()
		assert.Same(t, q, <-answers)
		assert.Empty(t, q.slots.requests)
	})
}

func TestAQueueSaysOnceThatItHearsAHostThatHasNotShownThatItHasItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, heard := commandsCame(1), make(chan *queue, 1)
		q.takes(inquiry{to: make(chan *queue, 1), heard: heard})
		assert.Empty(t, heard, "nothing came since")
		q.comes()
		assert.Same(t, q, <-heard)
		q.comes()
		assert.Empty(t, heard)
		q.takes(<-q.inquiries)
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

// newFormer is of these queues, for a Connect in slot 3.
func newFormer(queues ...*queue) *former {
	connects := &queue{results: make(chan result, 1)}
	return &former{target: &Target{down: make(chan struct{})}, queues: queues, connect: &command{q: connects, slot: 3}}
}

// A remote is a host of one queue, whose goroutine it is as well. In a bubble all takes the time that it says.
type remote struct {
	queue *queue
	pace  time.Duration // between two commands; 0 for a host that sends none
	last  time.Duration // after which it sends none; 0 for never
	cut   bool          // what it sends comes late, and nothing comes to it
	trip  time.Duration // what a read of no bytes takes

	reads []time.Duration // when it was read from, after its last command
	gone  bool            // its queue was broken off
}

func newRemote(entries int, pace time.Duration) *remote {
	q := commandsCame(1)
	q.controller, q.asked.SendSize = new(controller), uint16(entries-1)
	return &remote{queue: q, pace: pace, trip: 100 * time.Microsecond}
}

// run ends when the queue is broken off, or over is closed.
func (r *remote) run(over <-chan struct{}) {
	q, begun, read := r.queue, time.Now(), make(chan struct{}, 1)
	var paces <-chan time.Time
	if r.pace != 0 {
		tick := time.NewTicker(r.pace)
		defer tick.Stop()
		paces = tick.C
	}
	for {
		select {
		case <-over:
			close(q.ended)
			return
		case i := <-q.inquiries:
			if i.what == depart {
				r.gone = true
				close(q.ended)
				return
			}
			q.takes(i)
		case <-paces:
			if r.last == 0 || time.Since(begun) < r.last {
				q.comes()
			}
		case <-read:
			q.proofs.ended++
			q.prove()
		}
		if len(q.slots.requests) != 0 {
			q.slots.requests = q.slots.requests[:0]
			r.reads = append(r.reads, now()-q.heard)
			if !r.cut {
				time.AfterFunc(r.trip, func() { read <- struct{}{} })
			}
		}
	}
}

// connectBeside is how long a Connect waits for such hosts' queues.
func connectBeside(t *testing.T, remotes ...*remote) time.Duration {
	over := make(chan struct{})
	var wg sync.WaitGroup
	var queues []*queue
	for _, r := range remotes {
		queues = append(queues, r.queue)
		wg.Go(func() { r.run(over) })
	}
	time.Sleep(11111 * time.Microsecond) // not at the time of a command
	f, begun := newFormer(queues...), time.Now()
	go f.run()
	require.Equal(t, result{3, nil}, <-f.connect.q.results)
	took := time.Since(begun)
	close(over)
	wg.Wait()
	return took
}

func TestAHostThatSendsAtAnyPaceKeepsItsConnectionAndIsReadFromInAGap(t *testing.T) {
	for _, entries := range []int{2, 32, 128, 1024} {
		for _, rate := range []int{1, 2, 3, 5, 10, 20, 50, 100, 200, 300, 500, 1000, 10_000} {
			t.Run(fmt.Sprintf("%d entries, %d a second", entries, rate), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRemote(entries, time.Second/time.Duration(rate))
					took := connectBeside(t, r)
					assert.False(t, r.gone)
					assert.Less(t, took, heardTime*3/4)
					for _, after := range r.reads {
						assert.Greater(t, after, r.pace/16, "it may still send")
						assert.Less(t, after+r.trip, r.pace, "it sends before it has answered")
					}
				})
			})
		}
	}
}

func TestAHostThatSendsNothingKeepsItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote(128, 0)
		assert.Less(t, connectBeside(t, r), proofTime)
		assert.False(t, r.gone)
	})
}

func TestAHostThatIsCutKeepsItsConnectionForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote(128, 0)
		r.cut = true
		assert.Equal(t, proofTime, connectBeside(t, r))
		assert.True(t, r.gone)
	})
}

// What comes of it was on its way.
func TestTheLateCommandsOfAHostThatIsCutGiveItTimeButNoMore(t *testing.T) {
	for _, last := range []time.Duration{proofTime / 2, heardTime * 2} {
		synctest.Test(t, func(t *testing.T) {
			r := newRemote(128, 100*time.Millisecond)
			r.cut, r.last = true, last
			assert.Equal(t, heardTime, connectBeside(t, r))
			assert.True(t, r.gone)
		})
	}
}

func TestAHostsCutConnectionEndsWhenTheOtherOneHasAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut, lives := newRemote(128, 0), newRemote(128, 50*time.Millisecond)
		cut.cut = true
		took := connectBeside(t, cut, lives)
		assert.Greater(t, took, proofTime)
		assert.Less(t, took, heardTime)
		assert.True(t, cut.gone)
		assert.False(t, lives.gone)
	})
}

// While another one has time still, an answer is one.
func TestAHostThatAnswersLateKeepsItsConnectionWhileAnotherOneIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late, cut := newRemote(128, 0), newRemote(128, 100*time.Millisecond)
		late.trip = 2 * proofTime
		cut.cut, cut.last = true, proofTime/2
		assert.Equal(t, heardTime, connectBeside(t, late, cut))
		assert.False(t, late.gone)
		assert.True(t, cut.gone)
	})
}

func TestATargetThatWasPausedGivesFormerConnectionsTheirTimeAgain(t *testing.T) {
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
