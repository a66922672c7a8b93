package lane

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

// hangUp ends an attempt at a connection in order, before an answer has come.
func hangUp(t *testing.T, ia *dat.IA, e *dat.Endpoint) {
	unread, err := ia.NewDispatcher(dat.DispatcherConfig{QLen: 16})
	require.NoError(t, err)
	silent, err := ia.NewPSP(dat.PSPConfig{Dispatcher: unread})
	require.NoError(t, err)
	require.NoError(t, e.Connect(dat.ConnectConfig{Addr: ia.Attr().Address, Qual: silent.Qual()}))
	require.NoError(t, e.Disconnect(dat.Graceful))
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
			assert.ErrorIs(t, err, dat.EventError(dat.Disconnected), "of a lane of setups")
			e, err = l.end(l.here, 0)
			require.NoError(t, err)
			hangUp(t, l.ia, e)
			assert.ErrorIs(t, established(l.here, nil, 1), dat.EventError(dat.Disconnected), "of the other lanes")
			require.NoError(t, l.Close())
		})
	}
}
