package rpc

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
