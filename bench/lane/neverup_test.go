package lane

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw/event"
	dat "godat/runtime"
)

// hangUp ends an attempt at a connection in order, before an answer has come.
func hangUp(t *testing.T, ia *dat.IA, e *ep.Endpoint) {
	unread, err := ia.NewDispatcher(evd.Config{QLen: 16})
	require.NoError(t, err)
	silent, err := ia.NewPSP(ep.PSPConfig{Dispatcher: unread})
	require.NoError(t, err)
	require.NoError(t, e.Connect(ep.ConnectConfig{Addr: ia.Attr().Address, Qual: silent.Qual()}))
	require.NoError(t, e.Disconnect(ep.Graceful))
}

func TestAConnectionThatEndedInOrderBeforeItWasUpIsAnError(t *testing.T) {
	for _, provider := range []string{"loop", "iwarp:127.0.0.1"} {
		t.Run(provider, func(t *testing.T) {
			l := &Setups{slots: 4, accepted: make(chan struct{})}
			var err error
			l.ia, err = Config{Provider: provider}.Adapter()
			require.NoError(t, err)
			require.NoError(t, l.listen(4))
			go l.accept()
			e, err := l.end(l.here, 0)
			require.NoError(t, err)
			hangUp(t, l.ia, e)
			err = l.Take(func(int) bool { return true })
			assert.ErrorIs(t, err, event.Error(event.Disconnected), "of a lane of setups")
			e, err = l.end(l.here, 0)
			require.NoError(t, err)
			hangUp(t, l.ia, e)
			assert.ErrorIs(t, established(l.here, nil, 1), event.Error(event.Disconnected), "of the other lanes")
			require.NoError(t, l.Close())
		})
	}
}
