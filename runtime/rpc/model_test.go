package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"godat/ep"
	"godat/hw"
	"godat/hw/sim"
	"godat/mem"
	dat "godat/runtime"
)

var callPrograms = flag.Int("rpc.programs", 60, "random programs of callers to run on loop; half of that on iwarp and on the simulated device")

// callWorld is a server that is started anew, and clients whose callers cancel and break
// connections. The model says of each call how often it may have run.
type callWorld struct {
	t       *rapid.T
	ia      *dat.IA
	at      string
	memory  *mem.LMR // the server's
	handles []int    // what the handler does with the n-th request
	seen    atomic.Int32

	mu   sync.Mutex
	runs map[uint32]int // by the number of the call
	errs []error
}

// planned is a call of a program.
type planned struct {
	number uint32
	client int
	how    int // how it ends: see caller
	idem   bool
	sink   bool

	err error
}

const (
	mark       = 0xEE // what a caller fills its memory with when its call has returned
	sinkSize   = 600
	methodEcho = 1
	methodWait = 2 // until the caller has gone
)

func (w *callWorld) fail(err error) {
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.errs = append(w.errs, err)
	}
}

// handle is the server's handler.
func (w *callWorld) handle(r *Request) {
	n := int(w.seen.Add(1))
	number := binary.BigEndian.Uint32(r.Payload())
	w.mu.Lock()
	w.runs[number]++
	w.mu.Unlock()
	if r.Method() == methodWait {
		<-r.Context().Done()
	}
	if r.SinkLen() > 0 {
		_ = r.Write(w.memory.Segment(0, sinkSize), 0) // fails when the connection has ended
	}
	switch w.handles[n%len(w.handles)] {
	case 0:
		_ = r.Conn().Endpoint.Disconnect(ep.Abrupt)
	case 1:
		_ = r.Fail(CodeUser, strconv.Itoa(int(number)))
		return
	}
	_ = r.Reply(r.Payload())
}

// serve listens and serves until the server is shut down.
func (w *callWorld) serve(pz *mem.PZ) (s *Server, served chan bool) {
	s, err := Listen(context.Background(), w.ia, w.at, Config{Calls: 4, Message: 64, PZ: pz})
	require.NoError(w.t, err)
	w.at, served = s.Addr(), make(chan bool)
	go func() {
		handle(s, 3, w.handle)
		close(served)
	}()
	return s, served
}

// caller makes calls, one after the other.
func (w *callWorld) caller(clients []*Client, calls []*planned) {
	var memories []*mem.LMR
	for _, c := range clients {
		l, err := c.PZ().Alloc(sinkSize, hw.AllPrivileges)
		w.fail(err)
		memories = append(memories, l)
	}
	for _, p := range calls {
		w.call(clients[p.client], memories[p.client], p)
	}
	for i, l := range memories {
		if calls[len(calls)-1].client == i && calls[len(calls)-1].sink && bytes.Count(l.Bytes(), []byte{mark}) != sinkSize {
			w.fail(errors.New("the memory of a call that has returned was written"))
		}
		w.fail(l.Free())
	}
}

func (w *callWorld) call(c *Client, memory *mem.LMR, p *planned) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	call := Call{Method: methodEcho, Payload: binary.BigEndian.AppendUint32(nil, p.number), Idempotent: p.idem}
	switch p.how {
	case 1:
		cancel()
	case 2:
		call.Method = methodWait
		go cancel()
	case 3:
		go cancel()
	case 4:
		c.mu.Lock()
		now := c.now
		c.mu.Unlock()
		go func() { _ = now.link.conn.Endpoint.Disconnect(ep.Abrupt) }()
	}
	if p.sink {
		call.Sink = memory.Remote(0, sinkSize)
	}
	answer, err := c.Call(ctx, call, nil)
	for i := range memory.Bytes() {
		memory.Bytes()[i] = mark
	}
	p.err = err
	var failed *Error
	var none *CallError
	switch {
	case err == nil && !bytes.Equal(answer, call.Payload):
		w.fail(fmt.Errorf("call %d has the answer %x", p.number, answer))
	case errors.As(err, &none):
		if !errors.Is(err, ErrEnded) && !errors.Is(err, context.Canceled) && !errors.As(err, &failed) {
			w.fail(fmt.Errorf("call %d: %w", p.number, err))
		}
	case errors.As(err, &failed):
		if failed.Text != strconv.Itoa(int(p.number)) {
			w.fail(fmt.Errorf("call %d has the failure %w", p.number, err))
		}
	case err != nil:
		w.fail(fmt.Errorf("call %d: %w", p.number, err))
	}
}

// judge compares what a call said with how often it ran.
func (w *callWorld) judge(p *planned) {
	runs, says := w.runs[p.number], "an answer"
	most, least := 1, 1
	var none *CallError
	if errors.As(p.err, &none) {
		says, least = p.err.Error(), 0
		if !none.MayHaveRun {
			most = 0
		}
	}
	if p.idem && most > 0 {
		most = 1 << 30
	}
	if runs < least || runs > most {
		w.fail(fmt.Errorf("call %d (idempotent: %v) ran %d times, and its caller heard: %s", p.number, p.idem, runs, says))
	}
}

func (w *callWorld) run() {
	pz, err := w.ia.NewPZ()
	require.NoError(w.t, err)
	w.memory, err = pz.Alloc(sinkSize, hw.AllPrivileges)
	require.NoError(w.t, err)
	w.handles = rapid.SliceOfN(rapid.IntRange(0, 12), 3, 9).Draw(w.t, "handles")
	w.handles = append(w.handles, 2) // or else idempotent calls would never have an answer
	restarts := rapid.IntRange(0, 2).Draw(w.t, "restarts")
	s, served := w.serve(pz)
	var clients []*Client
	for _, redial := range []time.Duration{5 * time.Millisecond, 0} {
		c, err := Dial(context.Background(), w.ia, w.at, Config{Calls: 3, Message: 64, Redial: redial, Patience: 50 * time.Millisecond})
		require.NoError(w.t, err)
		clients = append(clients, c)
	}
	var all []*planned
	var callers sync.WaitGroup
	for range rapid.IntRange(1, 6).Draw(w.t, "callers") {
		var mine []*planned
		for range rapid.IntRange(1, 8).Draw(w.t, "calls") {
			mine = append(mine, &planned{
				number: uint32(len(all)), client: rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(w.t, "client"), how: rapid.IntRange(0, 7).Draw(w.t, "how"),
				idem: rapid.Bool().Draw(w.t, "idempotent"), sink: rapid.Bool().Draw(w.t, "sink"),
			})
			all = append(all, mine[len(mine)-1])
		}
		callers.Go(func() { w.caller(clients, mine) })
	}
	for range restarts {
		require.NoError(w.t, s.Shutdown(context.Background()))
		<-served
		s, served = w.serve(pz)
	}
	callers.Wait()
	for _, c := range clients {
		w.fail(c.Close())
	}
	w.fail(s.Shutdown(context.Background()))
	<-served
	w.fail(errors.Join(w.memory.Free(), pz.Close(), w.ia.CloseGraceful()))
	for _, p := range all {
		w.judge(p)
	}
	require.NoError(w.t, errors.Join(w.errs...))
}

func TestNoCallIsLostDoubledOrAnotherOnesWhateverBreaks(t *testing.T) {
	require.NoError(t, flag.Set("rapid.nofailfile", "true"))
	for name, programs := range map[string]int{"loop": *callPrograms, "iwarp:127.0.0.1": *callPrograms / 2, "sim": *callPrograms / 2} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, flag.Set("rapid.checks", strconv.Itoa(programs)))
			rapid.Check(t, func(t *rapid.T) {
				hangs := time.AfterFunc(time.Minute, func() {
					debug.SetTraceback("all")
					panic("a program of callers hangs")
				})
				defer hangs.Stop()
				var options []dat.Option
				device := sim.New(sim.Config{Seed: 7})
				if name == "sim" {
					options = append(options, dat.WithProvider(device))
				}
				ia, err := dat.Open(context.Background(), name, options...)
				require.NoError(t, err)
				w := &callWorld{t: t, ia: ia, at: ":0", runs: map[uint32]int{}}
				w.run()
				require.Empty(t, device.Violations())
			})
		})
	}
}
