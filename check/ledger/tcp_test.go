package ledger

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/hw"
	"godat/hw/iwarp"
)

// resetter dials through a relay that resets some connections, at both ends, in
// mid-transfer.
type resetter struct {
	every int64 // octets one way before a reset, on average

	wg     sync.WaitGroup
	mu     sync.Mutex
	dice   *rand.Rand
	resets int64
}

func (r *resetter) dial(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	far, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		_ = far.Close()
		return nil, err
	}
	defer ln.Close()
	near, err := d.DialContext(ctx, "tcp", ln.Addr().String())
	if err != nil {
		_ = far.Close()
		return nil, err
	}
	mid, err := ln.Accept()
	if err != nil {
		_ = far.Close()
		_ = near.Close()
		return nil, err
	}
	r.wg.Add(1)
	go r.relay(mid.(*net.TCPConn), far.(*net.TCPConn))
	return near, nil
}

// relay copies both ways until both ends have ended, or resets both after so many
// octets.
func (r *resetter) relay(a, b *net.TCPConn) {
	defer r.wg.Done()
	var both sync.WaitGroup
	for _, way := range [][2]*net.TCPConn{{a, b}, {b, a}} {
		r.mu.Lock()
		most := startUp + r.dice.Int64N(2*r.every)
		r.mu.Unlock()
		both.Go(func() {
			from, to := way[0], way[1]
			// The writer has no ReadFrom. That would splice through pipes, which Go keeps
			// open until the next garbage collection.
			if n, err := io.CopyN(struct{ io.Writer }{to}, from, most); err == nil && n == most {
				r.mu.Lock()
				r.resets++
				r.mu.Unlock()
				for _, c := range way {
					_ = c.SetLinger(0)
					_ = c.Close()
				}
				return
			}
			_ = to.CloseWrite()
		})
	}
	both.Wait()
	_ = a.Close()
	_ = b.Close()
}

// How many octets go one way before a reset. A post is some 40 octets, so few
// connections live for long.
const (
	rare  = 64 << 10
	often = 8 << 10
	// startUp octets always go through: a connection that fails while it is being set
	// up has another outcome.
	startUp = 1 << 10
)

func TestEveryPostCompletesExactlyOnceOverTCP(t *testing.T) {
	for i, every := range []int64{0, rare, often} {
		name := map[int64]string{0: "calm", rare: "reset every few thousand posts", often: "reset in no time"}[every]
		t.Run(name, func(t *testing.T) {
			cfg := Config{
				Adapters: [2]string{"iwarp:127.0.0.1", "iwarp:127.0.0.1"}, Seed: mix(seed, 200, uint64(i)), Ops: *opsFlag / 5, Links: links(),
				EarlyCompletion: true, Unreliable: every != 0, Patience: *patienceFlag,
			}
			r := &resetter{every: every, dice: rand.New(rand.NewPCG(cfg.Seed, 0))}
			var p hw.Provider = iwarp.New(iwarp.Config{})
			if every != 0 {
				p = iwarp.New(iwarp.Config{Dial: r.dial})
			}
			cfg.Providers = [2]hw.Provider{p, p}
			report := Run(cfg)
			r.wg.Wait()
			t.Logf("-ledger.seed=%d: %d resets, %v", seed, r.resets, report)
			assert.Empty(t, report.Complaints)
			assert.GreaterOrEqual(t, report.Posts(), cfg.Ops)
			if every == often {
				assert.NotZero(t, r.resets)
			}
		})
	}
}
