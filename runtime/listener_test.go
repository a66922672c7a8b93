package runtime

import (
	"net"
	"testing"

	"godat/ep"
	"godat/evd"
	"godat/hw"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAListenerHoldsAsManyRequestsAsItTakesConnections(t *testing.T) {
	const peers = 200 // more than a service point holds by default
	ia := open(t, "loop")
	l := listen(t, ia, ConnConfig{Conns: peers, Depth: 1, Message: 64})
	pz, err := ia.NewPZ()
	require.NoError(t, err)
	events, err := ia.NewDispatcher(evd.Config{QLen: 2 * peers, Mode: evd.ModeChannel})
	require.NoError(t, err)
	for range peers {
		e, err := ia.NewEndpoint(ep.Config{PZ: pz, Recv: events, Request: events, Conn: events})
		require.NoError(t, err)
		require.NoError(t, e.Connect(ep.ConnectConfig{Addr: ia.Attr().Address, Qual: l.psp.Load().Qual()}))
	}
	ctx := within(t)
	for established := 0; established < peers; {
		select {
		case ev := <-l.Requests():
			_, err = l.Accept(ep.RequestOf(ev), nil)
			require.NoError(t, err)
		case ev := <-events.C():
			require.NoError(t, ev.Err())
			established++
		case <-ctx.Done():
			require.NoError(t, ctx.Err(), "%d of %d are connected", established, peers)
		}
	}
}

func TestTheChannelOfAListenerHasPlacesForItsConnections(t *testing.T) {
	const most = 2614 // of Depth 128
	ia := open(t, "loop")
	for _, test := range []struct {
		cfg  ConnConfig
		want string
	}{
		{cfg: ConnConfig{Depth: 128, Conns: most}},
		{cfg: ConnConfig{Depth: 128, Conns: most + 1}, want: "Conns is 2615; at Depth 128 there may be 1 to 2614; with Apart"},
		{cfg: ConnConfig{Depth: 128, Conns: 10_000, Apart: true}},
		{cfg: ConnConfig{Conns: 1<<20 + 1, Apart: true}, want: "may be 1 to 1048576"},
		{cfg: ConnConfig{Conns: -1, Apart: true}, want: "may be 1 to"},
		{cfg: ConnConfig{Depth: 8192}}, // fewer than 128
	} {
		l, err := ia.Listen(t.Context(), "", test.cfg)
		if test.want != "" {
			require.ErrorContains(t, err, test.want)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
}

func TestAConnectionIsAsDeepAsItsDeviceWhateverAListenerMayTake(t *testing.T) {
	l := listen(t, open(t, "loop"), ConnConfig{Depth: 4096, Message: 64})
	require.NoError(t, dialItself(t, l, ConnConfig{Depth: 4096, Message: 64}).Close())
}

func TestListenTakesAnAddressWithoutAPort(t *testing.T) {
	ia := open(t, "iwarp")
	for _, address := range []string{"127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "localhost"} {
		l, err := ia.Listen(within(t), address, ConnConfig{})
		require.NoError(t, err, address)
		host, port, err := net.SplitHostPort(l.Addr())
		require.NoError(t, err)
		require.Equal(t, "127.0.0.1", host)
		require.NotEqual(t, "0", port)
		require.NoError(t, l.Close())
	}
	for address, want := range map[string]string{"::1": "::1", "[::1]": "::1", "host": "host"} {
		host, qual, err := splitListen("", address)
		require.NoError(t, err)
		require.Equal(t, want, host)
		require.Zero(t, qual)
	}
	for _, address := range []string{"[", "]", "[::1", "::1]", "[[::1]]", "]::1[", "[127.0.0.1", "localhost]", "[::1]1", "[::1]]:1"} {
		for _, call := range []func() error{
			func() error { _, err := ia.Listen(within(t), address, ConnConfig{}); return err },
			func() error { _, err := ia.Dial(within(t), address, ConnConfig{}); return err },
		} {
			requireCode(t, call(), hw.InvalidAddress, hw.AddressMalformed)
		}
	}
	require.NoError(t, ia.CloseGraceful())
}

// Whoever looks while Listen makes a listener asks the listener's dispatchers whose they are.
func TestASnapshotBesideListenNamesWhatItSees(t *testing.T) {
	ia := open(t, "loop")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 200 {
			l, err := ia.Listen(within(t), localhost(ia), ConnConfig{})
			if assert.NoError(t, err) {
				assert.NoError(t, l.Close())
			}
		}
	}()
	for {
		select {
		case <-done:
			return
		default:
			s, err := ia.Snapshot()
			require.NoError(t, err)
			for _, d := range s.Dispatchers {
				assert.NotContains(t, d.Owner, "nil")
			}
		}
	}
}
