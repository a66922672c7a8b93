package day

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/hw/iwarp"
	dat "godat/runtime"
	"godat/runtime/rpc"
)

var (
	lasts = flag.Duration("day.time", 3*time.Second, "how long the day lasts")
	seed  = flag.Uint64("day.seed", uint64(time.Now().UnixNano()), "of all that is drawn")
)

const (
	clients = 40
	servers = 3
	turn    = 400 * time.Millisecond // from one restart, and one overload, to the next
)

// The pool package starts two goroutines of its own when it is imported.
func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

// bounds are how often each call may have run, as its outcome says.
type bounds struct {
	mu       sync.Mutex
	of       map[uint64][2]int
	answered int
	broken   int // calls whose connection ended
	late     int // calls whose time was over
}

func TestADayInTheLifeOfAServiceLosesNothing(t *testing.T) {
	defer func() {
		if t.Failed() {
			t.Logf("again: go test ./check/day -day.time %v -day.seed %d", *lasts, *seed)
		}
	}()
	ia, err := dat.Open(t.Context(), "iwarp:127.0.0.1")
	require.NoError(t, err)
	defer func() { require.NoError(t, ia.Close()) }()
	ran, ends := &ledger{runs: make(map[uint64]int)}, &bounds{of: make(map[uint64][2]int)}
	var all [servers]*server
	for i := range all {
		all[i] = startServer(t, ia, ran)
	}
	ctx, cancel := context.WithTimeout(t.Context(), *lasts)
	defer cancel()
	var working sync.WaitGroup
	for i := range clients {
		rng := rand.New(rand.NewPCG(*seed, uint64(i)))
		working.Go(func() { work(ctx, t, uint64(i), all[i%servers].addr, rng, ends) })
	}
	turns(ctx, all[:])
	working.Wait()
	for _, s := range all {
		close(s.again)
		<-s.done
	}
	assert.NotZero(t, ends.answered)
	assert.NotZero(t, ends.broken+ends.late, "the day was too easy to judge by")
	t.Logf("%d calls, %d answers; %d connections ended under a call, %d calls were late", len(ends.of), ends.answered, ends.broken, ends.late)
	for call, n := range ran.runs {
		b, made := ends.of[call]
		if !made || n < b[0] || n > b[1] {
			t.Errorf("call %x ran %d times, and its caller knows of %v", call, n, b)
		}
		delete(ends.of, call)
	}
	for call, b := range ends.of {
		assert.Zero(t, b[0], "call %x never ran", call)
	}
}

// turns restarts a server and overloads the next, by turns.
func turns(ctx context.Context, all []*server) {
	tick := time.NewTicker(turn)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		all[(i+1)%len(all)].slow.Store(true)
		all[i%len(all)].slow.Store(false)
		select {
		case all[i%len(all)].again <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

// work is a client's day.
func work(ctx context.Context, t *testing.T, id uint64, addr string, rng *rand.Rand, ends *bounds) {
	ia, err := dat.Open(context.Background(), "iwarp", dat.WithProvider(iwarp.New(iwarp.Config{Dial: newLink(rng).dial, Address: "127.0.0.1"})))
	if !assert.NoError(t, err) {
		return
	}
	defer func() { assert.NoError(t, ia.Close()) }()
	c, err := rpc.Dial(ctx, ia, addr, rpc.Config{Calls: 4, Await: true, Redial: 50 * time.Millisecond, Patience: 300 * time.Millisecond})
	if err != nil {
		assert.ErrorIs(t, err, context.DeadlineExceeded, "only the day's end keeps a client out")
		return
	}
	defer func() { assert.NoError(t, c.Close()) }()
	for n := uint64(0); ctx.Err() == nil && !t.Failed(); n++ {
		payload := make([]byte, 8+rng.IntN(2<<10))
		number := id<<32 | n
		binary.BigEndian.PutUint64(payload, number)
		method := answers
		if rng.IntN(20) == 0 {
			method += uint16(rng.IntN(int(methods - answers)))
		}
		within, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond+time.Duration(rng.IntN(int(time.Second))))
		answer, err := c.Call(within, rpc.Call{Method: method, Payload: payload}, nil)
		answered, least, most, wrong := outcome(within, method, payload, answer, err)
		cancel()
		assert.NoError(t, wrong)
		ends.mu.Lock()
		ends.of[number] = [2]int{least, most}
		switch {
		case answered:
			ends.answered++
		case errors.Is(err, rpc.ErrEnded):
			ends.broken++
		case errors.Is(err, context.DeadlineExceeded):
			ends.late++
		}
		ends.mu.Unlock()
		rest := time.NewTimer(time.Duration(rng.IntN(int(20 * time.Millisecond))))
		<-rest.C
	}
}
