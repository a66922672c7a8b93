package program

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"godat/ep"
	"godat/runtime/rpc"
)

// Calls is a program of servers and clients that call: with deadlines, memory of either side, clients that
// connect anew, servers that are started anew, and handlers as bad programs have them.
type Calls struct{ Size }

// The methods of the servers.
const (
	echo    = 1 + iota // the answer is the payload
	put                // the answer is the payload, and the source has content
	get                // the sink gets content
	slow               // echo, after a while
	failing            // an error
	exits              // runtime.Goexit
	hangs              // until the caller has left
	twice              // replies by itself, and returns an answer, too
	deaf               // echo, after a while, whatever its caller does
	breaks             // the connection ends, and the answer is lost with it
	methods
)

// ledger is the judge of calls: what a caller was told against what has run.
type ledger struct {
	mu  sync.Mutex
	ran map[uint64]int
}

func (l *ledger) run(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ran[id]++
}

func (l *ledger) runs(id uint64) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ran[id]
}

// content is what memory of a call has.
func content(id uint64, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24), byte(id >> 32)}).Read(b)
	return b
}

// Run runs the program.
func (p Calls) Run(w *World) error {
	l := &ledger{ran: make(map[uint64]int)}
	known := methods // in most worlds nobody breaks a connection, so that no call may lose one
	if w.Draw(2).IntN(4) != 0 {
		known = breaks
	}
	notRun := make([][]uint64, p.Clients) // calls that were said not to have run
	err := p.play(w, func(ctx context.Context, s *service) error {
		first, err := rpc.Listen(ctx, s.ia, w.Listens(s.host), config(w))
		if err != nil {
			return err
		}
		s.address = first.Addr()
		s.running.Go(func() { serveCalls(ctx, w, l, s, first) })
		return nil
	}, func(ctx context.Context, is party) {
		c := &caller{party: is, w: w, l: l, draw: w.Draw(100 + is.number), methods: known}
		c.live(ctx, p.Rounds)
		notRun[is.number-1] = c.notRun
	})
	for _, id := range slices.Concat(notRun...) {
		if n := l.runs(id); n != 0 {
			w.Wrong("call %x: its caller was told that it has not run, and it ran %d times", id, n)
		}
	}
	return err
}

// grace is how long a server that is shut down waits for its callers.
const grace = 5 * time.Second

// config is that of all ends.
func config(w *World) rpc.Config {
	return rpc.Config{Calls: []int{1, 2, 4, 4}[w.Draw(3).IntN(4)], Redial: time.Second, Await: true, Stall: 20 * time.Second, Grace: grace}
}

// serveCalls serves until ctx ends, by one rpc.Server after the other: by Serve, or by a loop of the program's own.
func serveCalls(ctx context.Context, w *World, l *ledger, s *service, now *rpc.Server) {
	draw := w.Draw(500 + uint64(s.number))
	for n := 0; ; n++ {
		serving, end := context.WithCancel(ctx)
		handler := func(r *rpc.Request) ([]byte, error) { return handle(w, l, r) }
		serve := func() error { return now.Serve(serving, 3, handler) }
		if draw.IntN(2) == 0 {
			serve = func() error { return selects(serving, now, draw, handler) }
		}
		var ended sync.WaitGroup
		ended.Go(func() {
			if err := serve(); err != nil {
				w.Step(s.host, "server %d has ended: %v", n, err)
			}
		})
		select {
		case <-s.restart:
		case <-ctx.Done():
		}
		w.Step(s.host, "server %d is shut down", n)
		end()
		if ctx.Err() != nil {
			ended.Wait()
			return
		}
		next, err := rpc.Listen(ctx, s.ia, s.address, config(w)) // the old one still answers what it has begun
		ended.Wait()
		if err != nil {
			w.Step(s.host, "no further server: %v", err)
			return
		}
		now = next
	}
}

// selects serves as a program that takes requests by a loop of its own, which now and then has other work.
func selects(ctx context.Context, s *rpc.Server, draw *rand.Rand, handler rpc.Handler) error {
	down := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		down <- s.Shutdown(bounded)
	})
	var answering sync.WaitGroup
	for ev := range s.Requests() {
		r := rpc.RequestOf(ev)
		if r == nil {
			break
		}
		answering.Go(func() {
			defer func() { _ = r.Fail(rpc.CodeFailed, "no answer") }() // which fails when there is one
			if answer, err := handler(r); err != nil {
				_ = r.Fail(rpc.CodeFailed, err.Error())
			} else {
				_ = r.Reply(answer)
			}
		})
		if draw.IntN(3) == 0 {
			time.Sleep(time.Duration(draw.IntN(20)) * time.Millisecond)
		}
	}
	answering.Wait()
	if stop() {
		return nil // ctx has not ended
	}
	return <-down
}

// handle is the handler.
func handle(w *World, l *ledger, r *rpc.Request) ([]byte, error) {
	id := binary.BigEndian.Uint64(r.Payload())
	answer := bytes.Clone(r.Payload())
	l.run(id)
	switch r.Method() {
	case put:
		got := make([]byte, r.SourceLen())
		if err := r.ReadBytes(got, 0); err != nil {
			return nil, err
		}
		if !bytes.Equal(got, content(id, len(got))) {
			w.Wrong("call %x: the server read other bytes than its caller has", id)
		}
	case get:
		return answer, r.WriteBytes(content(id, int(r.SinkLen())), 0)
	case slow:
		sleep(r.Context(), time.Duration(id%50)*time.Millisecond)
	case failing:
		return nil, errors.New("as the caller asked")
	case exits:
		runtime.Goexit()
	case breaks:
		_ = r.Conn().Endpoint.Disconnect(ep.Abrupt) // fails when another has ended it
	case hangs:
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	case deaf:
		time.Sleep(time.Duration(id%3000) * time.Millisecond)
		if r.SinkLen() > 0 { // which fails when its caller has left
			return answer, r.WriteBytes(content(id, r.SinkLen()), 0)
		}
	case twice:
		_ = r.Reply(answer) // fails when the connection has ended
		return []byte("another's"), nil
	}
	return answer, nil
}

// caller is a client, and what it expects.
type caller struct {
	party
	w    *World
	l    *ledger
	draw *rand.Rand

	methods int // those that it calls are below

	server string // the host of the server that the client is connected to
	leaves atomic.Bool

	mu     sync.Mutex
	notRun []uint64 // calls that were said not to have run
}

// live makes a client anew now and then, and calls.
func (c *caller) live(ctx context.Context, rounds int) {
	var client *rpc.Client
	for n := range rounds {
		sleep(ctx, time.Duration(c.draw.Int64N(int64(mostPause))))
		if client == nil {
			dialing, cancel := context.WithTimeout(ctx, time.Minute)
			var err error
			to := c.draw.IntN(len(c.addrs))
			client, err = rpc.Dial(dialing, c.ia, c.addrs[to], config(c.w))
			c.server = c.hosts[to]
			cancel()
			if err != nil {
				c.w.Wrong("%s: no server in a minute: %v", c.host, err)
				return
			}
		}
		var calls sync.WaitGroup
		for k := range 1 + c.draw.IntN(6) {
			id := c.number<<32 | uint64(n)<<8 | uint64(k)
			method := 1 + c.draw.IntN(c.methods-1)
			limit := time.Duration(c.draw.IntN(81)) * time.Millisecond // 0: its caller has left before it calls
			if method != hangs && method != breaks && c.draw.IntN(2) == 0 {
				limit = 10 * time.Minute // nothing here takes so long
			}
			length := 1 + c.draw.IntN([]int{100, 10_000, 100_000, 1_000_000}[c.draw.IntN(4)])
			idempotent := c.draw.IntN(2) == 0
			calls.Go(func() { c.call(ctx, client, id, method, limit, length, idempotent) })
		}
		leaves := c.draw.IntN(15) == 0
		if leaves {
			sleep(ctx, time.Duration(c.draw.IntN(20))*time.Millisecond)
			c.leaves.Store(true)
			c.close(client)
		}
		calls.Wait()
		if leaves {
			c.leaves.Store(false)
			client = nil
		}
	}
	if client != nil {
		c.close(client)
	}
}

func (c *caller) close(client *rpc.Client) {
	if err := client.Close(); err != nil {
		c.w.Wrong("%s: Close: %v", c.host, err)
	}
}

// call makes one call, and judges its end.
func (c *caller) call(ctx context.Context, client *rpc.Client, id uint64, method int, limit time.Duration, length int, idempotent bool) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	call := rpc.Call{Method: uint16(method), Payload: binary.BigEndian.AppendUint64(nil, id), Idempotent: idempotent}
	switch method {
	case put:
		call.SourceBytes = content(id, length)
	case deaf:
		if length%2 == 0 {
			break
		}
		fallthrough
	case get:
		call.SinkBytes = make([]byte, length)
	case breaks:
		c.w.disturb(c.host, c.server)
	}
	began := time.Now()
	answer, err := client.Call(bounded, call, nil)
	took := time.Since(began)
	ran := c.l.runs(id)
	c.w.Step(c.host, "call %x of method %d: %q, %v, ran %d times", id, method, answer, err, ran)
	if past := took - limit; past > time.Minute {
		c.w.Wrong("call %x of %v took %v", id, limit, took)
	}
	if ran > 1 && !idempotent {
		c.w.Wrong("call %x is not idempotent, and ran %d times", id, ran)
	}
	failed, isCallError := errors.AsType[*rpc.CallError](err)
	at, _ := bounded.Deadline()
	if why := untrue(!time.Now().Before(at), err, method, idempotent); why != "" {
		c.w.Wrong("call %x of method %d %s: %v", id, method, why, err)
	}
	switch {
	case err == nil && !bytes.Equal(answer, call.Payload):
		c.w.Wrong("call %x was answered with %x", id, answer)
	case err == nil && (method == failing || method == exits || method == hangs || method == breaks):
		c.w.Wrong("call %x of method %d has an answer", id, method)
	case err == nil && ran == 0:
		c.w.Wrong("call %x has an answer, and has not run", id)
	case err == nil && call.SinkBytes != nil && !bytes.Equal(call.SinkBytes, content(id, length)):
		c.w.Wrong("call %x: its memory has other bytes than the server wrote", id)
	case err == nil:
	case errors.Is(err, rpc.ErrEnded) && !c.leaves.Load() && !c.w.Disturbed(c.host, c.server) && !c.w.Restarted(c.server):
		c.w.Wrong("call %x: a connection that nobody ended has: %v", id, err)
	case isCallError && !failed.MayHaveRun:
		c.mu.Lock()
		c.notRun = append(c.notRun, id)
		c.mu.Unlock()
	}
	if limit > time.Minute && errors.Is(err, context.DeadlineExceeded) {
		c.w.Wrong("call %x of %v got no answer: %v", id, limit, err)
	}
	if err != nil && call.SinkBytes != nil {
		c.keeps(ctx, id, call.SinkBytes)
	}
}

// untrue says what is wrong with the reason of a call's end, when its time was over or not; "" of one that may be.
func untrue(over bool, err error, method int, idempotent bool) string {
	failed, isCallError := errors.AsType[*rpc.CallError](err)
	_, isError := errors.AsType[*rpc.Error](err)
	refused := errors.Is(err, &rpc.Error{Code: rpc.CodeBusy}) || errors.Is(err, &rpc.Error{Code: rpc.CodeDraining})
	switch {
	case errors.Is(err, context.DeadlineExceeded) && !over:
		return "is late, says its error, and has time left"
	case isCallError && refused && failed.MayHaveRun && !idempotent: // one that is may have run before
		return "was refused, and may have run"
	case isCallError && !refused && !over && !errors.Is(err, rpc.ErrEnded):
		return "has no answer, and no reason"
	case isError && !isCallError && (method == echo || method == slow || method == twice):
		return "failed, and its handler gives no error"
	case err != nil && !isError && !isCallError:
		return "ended by an error of no kind"
	}
	return ""
}

// keeps judges that the memory of a call that has returned is its caller's.
func (c *caller) keeps(ctx context.Context, id uint64, memory []byte) {
	mark := content(^id, len(memory))
	copy(memory, mark)
	sleep(ctx, 200*time.Millisecond)
	if !bytes.Equal(memory, mark) {
		c.w.Wrong("call %x has returned, and the server writes to its memory", id)
	}
}
