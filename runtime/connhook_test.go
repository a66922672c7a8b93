package runtime

import (
	"context"
	"fmt"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
)

// noted notes the calls of a program's hooks.
type noted struct {
	mu   sync.Mutex
	up   map[*Conn]int
	ends map[*Conn][]event.Event
}

func (h *noted) config() ConnConfig {
	h.up, h.ends = make(map[*Conn]int), make(map[*Conn][]event.Event)
	return ConnConfig{
		Established: func(c *Conn) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.up[c]++
		},
		Ended: func(c *Conn, ev event.Event) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.ends[c] = append(h.ends[c], ev)
		},
	}
}

// of returns how often a connection was up, and its ends.
func (h *noted) of(c *Conn) (up int, ends []event.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.up[c], h.ends[c]
}

func TestHooksHearOnceOfTheBeginningAndTheEndOfEachConnection(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, ia *IA, client, server *Conn){
		"the peer closes": func(t *testing.T, _ *IA, client, server *Conn) {
			require.NoError(t, client.Close())
			require.True(t, nextEvent(t, server.Events()).Ended())
			require.NoError(t, server.Close())
		},
		"the adapter closes": func(t *testing.T, ia *IA, _, _ *Conn) { require.NoError(t, ia.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			ia := open(t, "loop")
			var h noted
			_, client, server := both(t, ia, h.config())
			for _, c := range []*Conn{client, server} {
				up, ends := h.of(c)
				assert.Equal(t, 1, up)
				assert.Empty(t, ends)
			}
			leave(t, ia, client, server)
			closed := 0 // the end that the adapter's close meets first
			for _, c := range []*Conn{client, server} {
				_, ends := h.of(c)
				require.Len(t, ends, 1, "before the program closes the connection itself")
				_ = c.Close()
				up, ends := h.of(c)
				assert.Equal(t, 1, up)
				require.Len(t, ends, 1)
				assert.Equal(t, c.Endpoint, ends[0].Source)
				if ends[0].Number == event.Closed {
					closed++
				} else {
					assert.True(t, ends[0].Ended())
				}
			}
			assert.Equal(t, name == "the adapter closes", closed > 0)
		})
	}
}

func TestAHookThatPanicsIsLoggedAndHarmsNothing(t *testing.T) {
	core, logs := observer.New(zap.ErrorLevel)
	ia := open(t, "loop", withLogger(zap.New(core)))
	_, client, server := both(t, ia, ConnConfig{
		Established: func(*Conn) { panic("up") },
		Ended:       func(*Conn, event.Event) { panic("down") },
	})
	say(t, client, "a")
	assert.Equal(t, "a", hear(t, server))
	require.NoError(t, client.Close())
	require.True(t, nextEvent(t, server.Events()).Ended())
	require.Eventually(t, func() bool { return logs.FilterMessage("a hook panicked").Len() == 4 }, patience, time.Millisecond)
}

// upOrDown makes a hook of Established or of Ended.
func upOrDown(up bool, hook func(*Conn)) (cfg ConnConfig) {
	if up {
		cfg.Established = hook
	} else {
		cfg.Ended = func(c *Conn, _ event.Event) { hook(c) }
	}
	return cfg
}

// onHooks runs a test for both hooks over each provider.
func onHooks(t *testing.T, test func(t *testing.T, ia *IA, up bool)) {
	for _, name := range []string{"loop", "iwarp:127.0.0.1"} {
		for _, up := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, up=%t", name, up), func(t *testing.T) { test(t, open(t, name), up) })
		}
	}
}

// Close of whatever the hook would wait for, and Dial, fail at once, and the connection goes on.
func TestACallThatWouldWaitForItsOwnHookFailsAtOnce(t *testing.T) {
	onHooks(t, func(t *testing.T, ia *IA, up bool) {
		errs := make(chan error, 100)
		l := listen(t, ia, ConnConfig{})
		cfg := upOrDown(up, func(c *Conn) {
			_, dialed := ia.Dial(context.Background(), l.Addr(), ConnConfig{})
			for _, err := range []error{
				c.Close(), c.Shutdown(context.Background()), l.Close(), l.Stop(), l.Shutdown(context.Background()),
				ia.Close(), ia.CloseGraceful(), dialed,
			} {
				errs <- err
			}
		})
		dialed := make(chan *Conn, 1)
		go func() {
			c, err := ia.Dial(context.Background(), l.Addr(), cfg)
			assert.NoError(t, err)
			dialed <- c
		}()
		server, err := l.Accept(ep.RequestOf(nextEvent(t, l.Requests())), nil)
		require.NoError(t, err)
		var client *Conn
		select {
		case client = <-dialed:
		case <-time.After(patience):
			require.Fail(t, "Dial hangs")
		}
		say(t, client, "a")
		require.Equal(t, event.Established, nextEvent(t, server.Events()).Number)
		assert.Equal(t, "a", hear(t, server))
		require.NoError(t, client.Close())
		for range 8 {
			requireCode(t, answer(t, errs), hw.InvalidState, hw.NoSubtype)
		}
		require.NoError(t, l.Close())
	})
}

func TestAHookThatEndsItsGoroutineHarmsNothing(t *testing.T) {
	onHooks(t, func(t *testing.T, ia *IA, up bool) {
		_, client, server := both(t, ia, upOrDown(up, func(*Conn) { goruntime.Goexit() }))
		say(t, client, "a")
		assert.Equal(t, "a", hear(t, server))
		require.NoError(t, client.Close())
		require.True(t, nextEvent(t, server.Events()).Ended())
	})
}

// A hook that never returns keeps its goroutine, and nothing else.
func TestNothingWaitsForAHookThatNeverReturns(t *testing.T) {
	for _, name := range []string{"loop", "iwarp:127.0.0.1"} {
		for _, up := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, up=%t", name, up), func(t *testing.T) {
				core, logs := observer.New(zap.ErrorLevel)
				ia := open(t, name, withLogger(zap.New(core)))
				ia.hookTime = 20 * time.Millisecond
				over, gone := make(chan struct{}), make(chan struct{}, 2)
				_, client, server := both(t, ia, upOrDown(up, func(*Conn) {
					<-over
					gone <- struct{}{}
				}))
				say(t, client, "a")
				assert.Equal(t, "a", hear(t, server))
				require.NoError(t, client.Close())
				require.True(t, nextEvent(t, server.Events()).Ended())
				closed := make(chan error, 1)
				go func() { closed <- ia.Close() }()
				require.NoError(t, answer(t, closed))
				assert.NotEmpty(t, logs.FilterMessage("a hook has not returned, and the connection goes on without it").All())
				close(over)
				<-gone
				<-gone
			})
		}
	}
}

// A Setup that panics, or ends its goroutine, takes its own connection along: the peer hears of
// it at once, and its place is free.
func TestASetupThatPanicsGivesItsPlaceBack(t *testing.T) {
	for fault, end := range map[string]func(){"panic": func() { panic("a mistake") }, "Goexit": goruntime.Goexit} {
		t.Run(fault, func(t *testing.T) {
			onTwo(t, func(t *testing.T, server, client *IA) {
				const places = 2
				var calls atomic.Int32
				l := listen(t, server, ConnConfig{Conns: places, Refusal: []byte("sorry"), Setup: func(*Conn) ([]byte, error) {
					if calls.Add(1) <= 2*places {
						end()
					}
					return nil, nil
				}})
				guarded := func(call func()) {
					done := make(chan any)
					go func() {
						defer close(done)
						defer func() { _ = recover() }()
						call()
					}()
					<-done
				}
				for i := range 2*places + 1 {
					dialed := make(chan error, 1)
					go func() {
						_, err := client.Dial(context.Background(), l.Addr(), ConnConfig{})
						dialed <- err
					}()
					request := ep.RequestOf(nextEvent(t, l.Requests()))
					var accepted *Conn
					guarded(func() { accepted, _ = l.Accept(request, nil) })
					err := answer(t, dialed)
					if i == 2*places {
						require.NoError(t, err)
						require.NotNil(t, accepted)
						continue
					}
					var cause *hw.Cause
					require.ErrorAs(t, err, &cause)
					assert.Equal(t, "sorry", string(cause.Private))
				}
				calls.Store(0)
				guarded(func() { _, _ = l.Dial(l.Addr(), nil) })
				guarded(func() {
					_, _ = client.Dial(context.Background(), l.Addr(), ConnConfig{Setup: l.cfg.Setup})
				})
				guarded(func() { _, _ = client.NewPaired(ConnConfig{Setup: l.cfg.Setup}) })
				require.NoError(t, l.Close())
				require.NoError(t, server.CloseGraceful())
			})
		})
	}
}

func TestASetupCannotCloseItsListener(t *testing.T) {
	onTwo(t, func(t *testing.T, server, client *IA) {
		errs := make(chan error, 3)
		var l *Listener
		l = listen(t, server, ConnConfig{Setup: func(*Conn) ([]byte, error) {
			errs <- l.Close()
			errs <- l.Stop()
			errs <- l.Shutdown(context.Background())
			return nil, nil
		}})
		dialed := make(chan error, 1)
		go func() {
			_, err := client.Dial(context.Background(), l.Addr(), ConnConfig{})
			dialed <- err
		}()
		_, err := l.Accept(ep.RequestOf(nextEvent(t, l.Requests())), nil)
		require.NoError(t, err)
		for range 3 {
			requireCode(t, answer(t, errs), hw.InvalidState, hw.NoSubtype)
		}
		require.NoError(t, answer(t, dialed))
		require.NoError(t, l.Close())
	})
}

// The other end waits for the dialer's first octets, which do not wait for the dialer's hook.
func TestAPeerComesUpBesideAHookThatHasNotReturned(t *testing.T) {
	ia := open(t, "iwarp:127.0.0.1")
	ia.hookTime = patience
	l := listen(t, ia, ConnConfig{})
	up, dialed := make(chan struct{}), make(chan *Conn, 1)
	go func() {
		c, err := ia.Dial(context.Background(), l.Addr(), ConnConfig{Established: func(*Conn) { <-up }})
		assert.NoError(t, err)
		dialed <- c
	}()
	server := accept(t, l)
	ev := nextEvent(t, server.Events())
	close(up)
	client := <-dialed
	require.NoError(t, ev.Err())
	require.Equal(t, event.Established, ev.Number)
	say(t, client, "a")
	assert.Equal(t, "a", hear(t, server))
	require.NoError(t, client.Close())
	require.NoError(t, l.Close())
}
