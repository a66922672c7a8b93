package runtime

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAListenerHoldsAsManyRequestsAsItTakesConnections(t *testing.T) {
	const peers = 200 // more than a service point holds by default
	ia := open(t, "loop")
	l := listen(t, ia, ConnConfig{Conns: peers, Depth: 1, Message: 64})
	pz, err := ia.NewPZ()
	require.NoError(t, err)
	events, err := ia.NewDispatcher(DispatcherConfig{QLen: 2 * peers, Mode: ModeChannel})
	require.NoError(t, err)
	for range peers {
		e, err := ia.NewEndpoint(EndpointConfig{PZ: pz, Recv: events, Request: events, Conn: events})
		require.NoError(t, err)
		require.NoError(t, e.Connect(ConnectConfig{Addr: ia.Attr().Address, Qual: l.psp.Qual()}))
	}
	ctx := within(t)
	for established := 0; established < peers; {
		select {
		case ev := <-l.Requests():
			_, err = l.Accept(RequestOf(ev), nil)
			require.NoError(t, err)
		case ev := <-events.C():
			require.NoError(t, ev.Err())
			established++
		case <-ctx.Done():
			require.NoError(t, ctx.Err(), "%d of %d are connected", established, peers)
		}
	}
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
	require.NoError(t, ia.CloseGraceful())
}
