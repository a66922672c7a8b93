package runtime

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/hw/sim"
	"godat/mem"
)

var heldPrograms = flag.Int("held.programs", 60, "random programs of handlers, closers and peers to run on loop; half of that on iwarp and on the simulated device")

// heldWorld is a server whose handlers keep what the library gave them, clients that come
// and go, and closers that close all of it meanwhile. The handlers check what they have
// before the closers and behind them.
type heldWorld struct {
	t              *rapid.T
	server, client *IA
	zone           *mem.PZ // nil: each connection has one of its own
	listener       *Listener
	cfg            ConnConfig
	imm            bool // the device writes with immediate data

	// What the generator has drawn, for the n-th handler, Setup or client.
	ends    []int // how a handler gives its buffer back
	setups  []int // what Setup does
	clients []int // what a client does behind its messages

	began, seen atomic.Int32
	closed      chan struct{} // when the closers have closed everything
	handlers    sync.WaitGroup
	outboxes    sync.Mutex // held by calls of Queue and Flush

	mu   sync.Mutex
	errs []error
	held []held
}

// held is memory of Conn.Alloc, which the program never gives back.
type held struct {
	region *mem.LMR
	memory []byte
	mark   byte
}

func (w *heldWorld) fail(err error) {
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.errs = append(w.errs, err)
	}
}

// guarded runs f. A fault in it is an error, and ends no process.
func (w *heldWorld) guarded(what string, f func()) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			w.fail(fmt.Errorf("%s: %v", what, v))
		}
	}()
	f()
}

const heldMessage = 600

// setup is the Setup of the server's connections: it allocates memory, and may keep a
// buffer, before it is known whether there will be a connection.
func (w *heldWorld) setup(c *Conn) (private []byte, err error) {
	n := int(w.began.Add(1))
	l, err := c.Alloc(2*heldMessage, hw.AllPrivileges)
	if err != nil {
		return nil, err
	}
	h := held{l, l.Bytes(), byte(n)}
	fillWith(h.memory[heldMessage:], h.mark) // the rest is the peer's to write
	w.mu.Lock()
	w.held = append(w.held, h)
	w.mu.Unlock()
	switch w.setups[n%len(w.setups)] {
	case 0:
		b := c.Buffer()
		fillWith(b.Resize(b.Cap()), h.mark)
		w.handle(c, b)
	case 1:
		b := c.Buffer()
		fillWith(b.Resize(b.Cap()), h.mark)
		w.handle(c, b)
		return nil, errors.New("this peer is not welcome")
	case 2:
		if freed, err := c.Register(make([]byte, 64), hw.RemoteRead); err == nil { // unless the adapter is closed
			w.fail(freed.Free())
		}
	}
	return l.Remote(0, heldMessage).MarshalBinary()
}

func fillWith(b []byte, with byte) {
	for i := range b {
		b[i] = with
	}
}

// isAll returns an error unless all bytes are one.
func isAll(what string, b []byte, want byte) error {
	if at := slices.IndexFunc(b, func(c byte) bool { return c != want }); at >= 0 {
		return fmt.Errorf("%s: byte %d of %d is %#x, not %#x", what, at, len(b), b[at], want)
	}
	return nil
}

// handle keeps a buffer until everything is closed, and gives it back.
func (w *heldWorld) handle(c *Conn, b *mem.Buffer) {
	n := int(w.seen.Add(1))
	end := w.ends[n%len(w.ends)]
	w.handlers.Go(func() {
		w.guarded("handler", func() {
			length, want := len(b.Bytes()), byte(0)
			if length > 0 {
				want = b.Bytes()[0]
			}
			w.fail(isAll("a new message", b.Bytes(), want))
			if end%2 == 0 {
				<-w.closed
			}
			w.fail(isAll("a message that was kept", b.Bytes(), want))
			fillWith(b.Resize(b.Cap()), byte(n))
			if end == 0 {
				b.Lend()
				b.Return(b.Cap())
			}
			w.fail(isAll("the handler's own bytes", b.Bytes(), byte(n)))
			w.giveBack(c, b, end)
		})
	})
}

// giveBack gives a buffer back in one of the ways that there are. The connection may be
// over or closed.
func (w *heldWorld) giveBack(c *Conn, b *mem.Buffer, how int) {
	b.Resize(min(b.Cap(), 8))
	switch how / 2 % 4 {
	case 0:
		c.Release(b)
	case 1:
		_ = c.Send(b)
	case 2:
		w.outboxes.Lock()
		defer w.outboxes.Unlock()
		_ = c.Queue(b)
		_ = c.Flush()
	case 3:
		b.Put()
	}
}

// serve is the server's loop, until the listener is closed.
func (w *heldWorld) serve() {
	for {
		select {
		case ev := <-w.listener.Requests():
			if ev.Number == event.Closed {
				return
			}
			_, _ = w.listener.Accept(ep.RequestOf(ev), nil) // its Setup may fail
		case ev := <-w.listener.Events():
			if ev.Number == event.Closed {
				return
			}
			w.take(ev)
		}
	}
}

func (w *heldWorld) take(ev event.Event) {
	c := ConnOf(ev)
	b := c.Message(ev)
	switch {
	case b != nil && ev.Op != hw.OpRecv:
		w.fail(fmt.Errorf("a message of %v", ev))
	case b != nil:
		w.handle(c, b)
	case ev.Ended():
		w.failUnlessHeld(c.Close())
	}
}

// failUnlessHeld notes an error of Close. With Debug it names the holders of buffers.
func (w *heldWorld) failUnlessHeld(err error) {
	if err != nil && (!w.cfg.Debug || !errors.Is(err, hw.ErrInvalidState)) {
		w.fail(err)
	}
}

// ask is a client: it sends messages, and writes with immediate data.
func (w *heldWorld) ask(n int) {
	what := w.clients[n%len(w.clients)]
	cfg := w.cfg
	cfg.Setup, cfg.PZ = nil, nil
	c, err := w.client.Dial(context.Background(), w.listener.Addr(), cfg)
	if err != nil {
		return // the server may be closed already, or not want the client
	}
	for i := range cfg.Depth {
		if what&1 != 0 && i == 0 && w.imm {
			w.writeImmediate(c)
			continue
		}
		_ = c.SendBytes(bytes.Repeat([]byte{byte(n + i)}, 1+what*i))
	}
	if what&2 != 0 {
		w.failUnlessHeld(c.Close())
	}
}

// writeImmediate writes more than a message to the memory that the server showed.
func (w *heldWorld) writeImmediate(c *Conn) {
	to, err := mem.ParseRemoteSegment(c.Private())
	if err != nil {
		return
	}
	from, err := c.Register(make([]byte, heldMessage), hw.LocalRead)
	if err == nil {
		_ = c.Endpoint.PostRDMAWriteImmediate(1, hw.Default, 7, to, from.Segment(0, heldMessage))
	}
}

func newHeldWorld(t *rapid.T, open func() *IA) *heldWorld {
	kind := rapid.IntRange(0, 7)
	w := &heldWorld{
		t: t, server: open(), client: open(), closed: make(chan struct{}),
		ends:    rapid.SliceOfN(kind, 1, 8).Draw(t, "ends"),
		setups:  rapid.SliceOfN(rapid.IntRange(0, 4), 1, 4).Draw(t, "setups"),
		clients: rapid.SliceOfN(kind, 1, 6).Draw(t, "clients"),
	}
	w.imm = w.client.Attr().Ops.Has(hw.OpWriteImm)
	w.cfg = ConnConfig{
		Depth: rapid.IntRange(1, 4).Draw(t, "depth"), Message: rapid.SampledFrom([]int{64, 4096}).Draw(t, "message"),
		Debug: rapid.Bool().Draw(t, "debug"), Setup: w.setup,
	}
	var err error
	if rapid.Bool().Draw(t, "zone") {
		w.zone, err = w.server.NewPZ()
		require.NoError(t, err)
	}
	w.cfg.PZ = w.zone
	w.listener, err = w.server.Listen(context.Background(), localhost(w.server), w.cfg)
	require.NoError(t, err)
	return w
}

// run runs the program, and returns when everything is closed and given back.
func (w *heldWorld) run() {
	closers := []func(){
		func() { w.failUnlessHeld(w.listener.Close()) },
		func() { w.fail(w.server.Close()) },
		func() { w.fail(w.client.Close()) },
		func() {
			if w.zone != nil {
				_ = w.zone.Close() // it may be in use
			}
		},
	}
	order := rapid.Permutation(closers).Draw(w.t, "order")
	after := rapid.IntRange(0, len(w.clients)).Draw(w.t, "after")
	var all sync.WaitGroup
	all.Go(w.serve)
	asked := make(chan struct{}, len(w.clients))
	for n := range w.clients {
		all.Go(func() {
			w.ask(n)
			asked <- struct{}{}
		})
	}
	for range after {
		<-asked
	}
	for _, closeIt := range order {
		closeIt()
	}
	all.Wait()
	w.reuse()
	w.fail(w.checkAllocated("memory of Alloc behind the end"))
	close(w.closed)
	w.handlers.Wait()
	w.fail(w.checkAllocated("memory of Alloc in the end"))
	for side, ia := range map[string]*IA{"server": w.server, "client": w.client} {
		if s := ia.domain.Stats(); s != (mem.Stats{}) {
			w.fail(fmt.Errorf("nobody has anything, and the %s still has %+v", side, s))
		}
	}
}

// checkAllocated checks all that Alloc gave to the program.
func (w *heldWorld) checkAllocated(when string) (err error) {
	w.guarded(when, func() {
		for _, h := range w.held {
			err = errors.Join(err, isAll(when, h.memory[heldMessage:], h.mark))
			fillWith(h.memory[heldMessage:], h.mark)
		}
	})
	return err
}

// reuse lets others have what the library has given back to the system: a slice of that
// shows their bytes then.
func (w *heldWorld) reuse() {
	other, err := Open(context.Background(), "loop")
	require.NoError(w.t, err)
	defer func() { w.fail(other.Close()) }()
	pz, err := other.NewPZ()
	require.NoError(w.t, err)
	for range 8 {
		l, err := pz.Alloc(1<<16, hw.LocalRead)
		require.NoError(w.t, err)
		defer func() { w.fail(l.Free()) }()
		fillWith(l.Bytes(), 0xee)
	}
}

// Each byte that the program was given is its own until it gives it back, whatever is
// closed in whatever order; and what is left behind the end is what the program holds.
func TestWhatTheProgramHoldsIsItsOwnWhateverCloses(t *testing.T) {
	require.NoError(t, flag.Set("rapid.nofailfile", "true"))
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	for name, half := range map[string]bool{"loop": false, "iwarp": true, "sim": true} {
		t.Run(name, func(t *testing.T) {
			programs := *heldPrograms
			if half {
				programs = (programs + 1) / 2
			}
			require.NoError(t, flag.Set("rapid.checks", strconv.Itoa(programs)))
			rapid.Check(t, func(t *rapid.T) {
				hangs := time.AfterFunc(time.Minute, func() {
					debug.SetTraceback("all")
					panic("a program of handlers hangs")
				})
				defer hangs.Stop()
				device := sim.New(sim.Config{Seed: 5})
				w := newHeldWorld(t, func() *IA {
					var opts []Option
					if name == "sim" {
						opts = append(opts, WithProvider(device))
					}
					ia, err := Open(context.Background(), name, opts...)
					require.NoError(t, err)
					return ia
				})
				w.run()
				assert.Empty(t, w.errs)
				assert.Empty(t, device.Violations())
			})
		})
	}
}
