//go:build !race

package runtime

import (
	"testing"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAMessageAllocatesNothing(t *testing.T) {
	ia := open(t, "loop")
	l, err := ia.Listen(t.Context(), "", ConnConfig{Message: 64})
	require.NoError(t, err)
	client, err := l.Dial(l.Addr(), nil)
	require.NoError(t, err)
	server := accept(t, l)
	for range 2 {
		require.Equal(t, event.Established, nextEvent(t, l.Events()).Number)
	}
	for name, send := range map[string]func(b *mem.Buffer) error{
		"sent": client.Send,
		"queued": func(b *mem.Buffer) error {
			if err := client.Queue(b); err != nil {
				return err
			}
			return client.Flush()
		},
	} {
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			b := client.Buffer()
			b.Resize(64)
			if err := send(b); err != nil {
				t.Error(err)
			}
			server.Release(server.Message(<-l.Events()))
		}), name)
	}
	require.NoError(t, l.Close())
}

func TestADoOfOneOperationAllocatesNothing(t *testing.T) {
	ia := open(t, "loop")
	l, err := ia.Listen(t.Context(), "", ConnConfig{})
	require.NoError(t, err)
	client, err := l.Dial(l.Addr(), nil)
	require.NoError(t, err)
	server := accept(t, l)
	mine, err := client.Alloc(64, hw.AllPrivileges)
	require.NoError(t, err)
	theirs, err := server.Alloc(64, hw.AllPrivileges)
	require.NoError(t, err)
	write := ep.DTO{Op: hw.OpWrite, Segment: mine.Segment(0, 64), Remote: theirs.Remote(0, 64)}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if err := client.Do(t.Context(), write); err != nil {
			t.Error(err)
		}
	}))
	require.NoError(t, l.Close())
}
