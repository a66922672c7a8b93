package delivery

import (
	"fmt"
	"testing"

	"godat/hw/event"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// TestPutSuccessIsPut delivers the same completions by both methods, after the
// ring's places have held events with every field set.
func TestPutSuccessIsPut(t *testing.T) {
	source := new(int)
	for _, c := range []event.Event{
		{Number: event.DTOCompletion, Op: hw.OpRecv, Length: 7, Cookie: 1, Source: source},
		{Number: event.DTOCompletion, Op: hw.OpSend, Cookie: ^uint64(0), Source: source},
	} {
		for _, mode := range []*Way{Ring, Channel, Batches} {
			t.Run(fmt.Sprint(mode, c), func(t *testing.T) {
				d := newDispatcher(t, Config{Way: mode, QLen: 4})
				q := d.Main()
				full := event.Event{
					Number: event.IBDTOEvent, Op: hw.OpRecvImm, Flags: event.HasImm, Length: 9, Key: 9, Cookie: 9,
					Source: t, Data: t,
				}
				for range 8 {
					require.True(t, q.Reserve(1))
					q.Put(&full)
					q.Flush()
					require.Equal(t, full, next(t, d))
				}
				require.True(t, q.Reserve(1))
				succeed(q, new(Lane), source, c.Cookie, c.Op, c.Length)
				q.Flush()
				d.Flush()
				assert.Equal(t, c, next(t, d))
				require.True(t, q.Reserve(4), "its place is free again")
				q.Release(4)
			})
		}
	}
}

// next receives an event, which must be there.
func next(t *testing.T, d *Dispatcher) event.Event {
	switch d.way() {
	case Channel:
		return <-d.C()
	case Batches:
		b := <-d.Batches()
		defer b.Release()
		require.Len(t, b.Events(), 1)
		return b.Events()[0]
	default:
		var buf [1]event.Event
		n, err := d.Dequeue(buf[:])
		require.NoError(t, err)
		require.Equal(t, 1, n)
		return buf[0]
	}
}
