package rpc

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

func TestTotalsKeepWhatClosedClientsAndServersCounted(t *testing.T) {
	ia := open(t, "loop")
	var address string
	for round := range uint64(3) {
		s, err := Listen(t.Context(), ia, "127.0.0.1:4711", Config{})
		require.NoError(t, err)
		address = s.Addr()
		left := make(chan struct{})
		go func() {
			_ = s.Serve(context.Background(), 1, func(r *Request) ([]byte, error) {
				if r.Method() == 1 {
					return nil, &Error{CodeUser, "no"}
				}
				<-left
				return nil, nil
			})
		}()
		c, err := Dial(t.Context(), ia, address, Config{})
		require.NoError(t, err)
		_, err = c.Call(t.Context(), Call{Method: 1}, nil)
		require.Error(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		_, err = c.Call(ctx, Call{Method: 2}, nil)
		cancel()
		close(left)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, c.Close())
		require.NoError(t, c.Close(), "which counts nothing twice")
		require.NoError(t, s.Close())
		rows := reported[TotalSnapshot](t, ia, "rpc totals")
		require.Len(t, rows, 2)
		assert.Equal(t, address, rows[0].Address)
		assert.Equal(t, []string{"client", "server"}, []string{rows[0].End, rows[1].End})
		assert.Equal(t, round+1, rows[0].Failures)
		assert.Equal(t, round+1, rows[0].Late)
		assert.Equal(t, round+1, rows[1].Failures)
	}
}

func TestTotalsHaveABoundOnAddresses(t *testing.T) {
	all := &totals{of: make(map[totalOf]*total)}
	for i := range 1000 {
		all.join(totalOf{"client", fmt.Sprint(i)}, i, func() TotalSnapshot { return TotalSnapshot{Reconnects: 1} }, new(methods))()
	}
	rows, sum := all.rows(), uint64(0)
	assert.Len(t, rows, mostAddresses+1)
	for _, row := range rows {
		sum += row.(TotalSnapshot).Reconnects
	}
	assert.EqualValues(t, 1000, sum)
}

// A program that closes its adapters alone keeps nothing of the servers and clients that were there.
func TestAClosedAdapterKeepsNoServerAndNoClient(t *testing.T) {
	for _, name := range adapters {
		t.Run(name, func(t *testing.T) {
			key := forgotten(t, name)
			assert.Eventually(t, func() bool {
				runtime.GC()
				totalsMu.Lock()
				defer totalsMu.Unlock()
				_, kept := totalsOf[key]
				return !kept && key.Value() == nil
			}, 10*time.Second, 10*time.Millisecond)
		})
	}
}

// forgotten is an adapter that was closed below a server and a client.
func forgotten(t *testing.T, name string) weak.Pointer[dat.IA] {
	ia, err := dat.Open(t.Context(), name)
	require.NoError(t, err)
	s, err := Listen(t.Context(), ia, ":0", Config{})
	require.NoError(t, err)
	served := goServe(t, s, 1, func(*Request) ([]byte, error) { return nil, nil })
	c, err := Dial(t.Context(), ia, s.Addr(), Config{})
	require.NoError(t, err)
	_, err = c.Call(t.Context(), Call{}, nil)
	require.NoError(t, err)
	require.NoError(t, ia.Close())
	require.NoError(t, <-served)
	_, err = c.Call(t.Context(), Call{}, nil)
	require.ErrorIs(t, err, ErrEnded)
	return weak.Make(ia)
}
