package runtime

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

// An error about an object that was closed says which of the program's it is.
func TestAnErrorNamesTheObjectThatIsClosed(t *testing.T) {
	onTwo(t, func(t *testing.T, other, ia *IA) {
		pz, err := ia.NewPZ()
		require.NoError(t, err)
		closed, err := ia.NewPZ()
		require.NoError(t, err)
		require.NoError(t, closed.Close())
		foreign, err := other.NewPZ()
		require.NoError(t, err)
		d, err := ia.NewDispatcher(evd.Config{QLen: 8, Streams: event.DefaultStreams | event.StreamSoftware})
		require.NoError(t, err)
		require.NoError(t, d.Close())
		endpoint := func(cfg ep.Config) error {
			cfg.PZ = pz
			return errorOf(ia.NewEndpoint(cfg))
		}
		for _, tc := range []struct {
			sub  hw.Subtype
			want []string
			err  error
		}{
			{hw.HandleEVDRecv, []string{"ep.NewEndpoint", "closed"}, endpoint(ep.Config{Recv: d})},
			{hw.HandleEVDRequest, []string{"ep.NewEndpoint", "closed"}, endpoint(ep.Config{Request: d})},
			{hw.HandleEVDConn, []string{"ep.NewEndpoint", "closed"}, endpoint(ep.Config{Conn: d})},
			{hw.HandleEVDCR, []string{"ep.NewPSP", "closed"}, errorOf(ia.NewPSP(ep.PSPConfig{Dispatcher: d}))},
			{hw.HandleEVDAsync, []string{"runtime.Open", "WithAsync", "closed"}, errorOf(Open(t.Context(), "loop", WithAsync(d)))},
			{hw.HandlePZ, []string{"runtime.Listen", "ConnConfig.PZ is closed"}, errorOf(ia.Listen(t.Context(), localhost(ia), ConnConfig{PZ: closed}))},
			{hw.HandlePZ, []string{"runtime.Dial", "ConnConfig.PZ is closed"}, errorOf(ia.Dial(t.Context(), "127.0.0.1:9", ConnConfig{PZ: closed}))},
			{hw.HandlePZ, []string{"runtime.Listen", "ConnConfig.PZ is another adapter's"}, errorOf(ia.Listen(t.Context(), localhost(ia), ConnConfig{PZ: foreign}))},
			{hw.Handle1, []string{"evd.Dequeue", "closed"}, errorOf(d.Dequeue(make([]event.Event, 1)))},
			{hw.Handle1, []string{"evd.Wait", "closed"}, func() error { _, _, err := d.Wait(t.Context(), 1); return err }()},
			{hw.Handle1, []string{"evd.Resize", "closed"}, d.Resize(16)},
			{hw.Handle1, []string{"evd.PostSoftware", "closed"}, d.PostSoftware("a")},
			{hw.Handle1, []string{"evd.Query", "closed"}, errorOf(d.Query())},
		} {
			requireCode(t, tc.err, hw.InvalidHandle, tc.sub)
			for _, want := range tc.want {
				assert.ErrorContains(t, tc.err, want)
			}
		}
		wrong, err := evd.New(evd.Config{QLen: 4, Streams: event.StreamDTO})
		require.NoError(t, err)
		_, err = Open(context.Background(), "loop", WithAsync(wrong))
		require.ErrorIs(t, err, hw.ErrInvalidParameter)
		assert.ErrorContains(t, err, "runtime.Open WithAsync")
		_, err = Open(context.Background(), "loop", WithAsync(new(evd.Dispatcher)))
		requireCode(t, err, hw.InvalidHandle, hw.HandleEVDAsync)
	})
}
