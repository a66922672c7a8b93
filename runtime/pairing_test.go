package runtime

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

// onPairing runs a test on each provider that pairs.
func onPairing(t *testing.T, test func(t *testing.T, ia *IA)) {
	onEach(t, func(t *testing.T, ia *IA) {
		if ia.Attr().Provider == "iwarp" {
			_, err := ia.NewPaired(ConnConfig{})
			require.ErrorIs(t, err, errors.ErrUnsupported)
			return
		}
		test(t, ia)
	})
}

// pairings makes two connections without peers.
func pairings(t *testing.T, ia *IA, cfg ConnConfig) (p, q *Pairing) {
	t.Helper()
	cfg.Debug = true
	p, err := ia.NewPaired(cfg)
	require.NoError(t, err)
	q, err = ia.NewPaired(cfg)
	require.NoError(t, err)
	return p, q
}

func pairedConns(t *testing.T, ia *IA, cfg ConnConfig) (a, b *Conn) {
	t.Helper()
	p, q := pairings(t, ia, cfg)
	a, err := p.Connect(within(t), q.Local())
	require.NoError(t, err)
	b, err = q.Connect(within(t), p.Local())
	require.NoError(t, err)
	return a, b
}

func TestAPairedConnHasWhatADialedOneHas(t *testing.T) {
	onPairing(t, func(t *testing.T, ia *IA) {
		a, b := pairedConns(t, ia, ConnConfig{Depth: 4})
		for range 3 {
			for range 4 {
				require.NoError(t, a.SendBytes([]byte("ask")))
			}
			for range 4 {
				m := b.Message(nextEvent(t, b.Events()))
				require.Equal(t, "ask", string(m.Bytes()))
				require.NoError(t, b.Send(m))
			}
			for range 4 {
				a.Release(a.Message(nextEvent(t, a.Events())))
			}
		}
		assert.Equal(t, a.LocalAddr().String(), b.RemoteAddr().String())
		assert.Equal(t, "pair", a.LocalAddr().Network())
		require.NoError(t, a.Shutdown(within(t)))
		for _, c := range []*Conn{a, b} {
			ev := nextEvent(t, c.Events())
			assert.Equal(t, event.Disconnected, ev.Number)
			require.NoError(t, ev.Err())
		}
		require.NoError(t, b.Close())
	})
}

func TestAPairingThatHasTheWrongValuesMayTryAgain(t *testing.T) {
	onPairing(t, func(t *testing.T, ia *IA) {
		p, q := pairings(t, ia, ConnConfig{})
		bad := q.Local()
		bad.PSN ^= 1
		_, err := p.Connect(within(t), bad)
		require.ErrorIs(t, err, hw.ErrInvalidParameter)
		require.ErrorContains(t, err, "runtime.Pairing.Connect "+bad.String())
		a, err := p.Connect(within(t), q.Local())
		require.NoError(t, err)
		require.NoError(t, p.Close())
		require.Equal(t, ep.Connected, a.Endpoint.State(), "the connection is the program's")
		_, err = p.Connect(within(t), q.Local())
		require.ErrorIs(t, err, hw.ErrInvalidHandle)
		require.NoError(t, q.Close())
		ev := nextEvent(t, a.Events())
		assert.True(t, ev.Ended(), "the peer was closed before it paired")
		require.NoError(t, a.Close())
		_, err = q.Connect(within(t), p.Local())
		require.ErrorIs(t, err, hw.ErrInvalidHandle)
		_, err = q.Connect(nil, p.Local()) //nolint:staticcheck // it is an error
		require.ErrorIs(t, err, hw.ErrInvalidParameter)
	})
}

func TestASetupThatFailsEndsAPairing(t *testing.T) {
	onPairing(t, func(t *testing.T, ia *IA) {
		_, err := ia.NewPaired(ConnConfig{Setup: func(*Conn) ([]byte, error) { return nil, errors.ErrUnsupported }})
		require.ErrorIs(t, err, errors.ErrUnsupported)
	})
}

// pairable makes an endpoint with a dispatcher of its own.
func pairable(t *testing.T, ia *IA) (*ep.Endpoint, *evd.Dispatcher, *mem.PZ) {
	t.Helper()
	pz, err := ia.NewPZ()
	require.NoError(t, err)
	d, err := ia.NewDispatcher(evd.Config{Mode: evd.ModeChannel, QLen: 32})
	require.NoError(t, err)
	e, err := ia.NewEndpoint(ep.Config{PZ: pz, Recv: d, Request: d, Conn: d})
	require.NoError(t, err)
	return e, d, pz
}

func TestABareEndpointPairsDisconnectsResetsAndPairsAgain(t *testing.T) {
	onPairing(t, func(t *testing.T, ia *IA) {
		x, xd, xz := pairable(t, ia)
		y, yd, yz := pairable(t, ia)
		var last hw.PairAddr
		for range 3 {
			v, err := x.PairAddr()
			require.NoError(t, err)
			require.NotEqual(t, last, v)
			last = v
			w, err := y.PairAddr()
			require.NoError(t, err)
			require.NoError(t, x.Pair(w))
			require.Equal(t, event.Established, nextEvent(t, xd.C()).Number)
			require.Equal(t, ep.Connected, x.State())
			require.ErrorIs(t, x.Pair(w), hw.ErrInvalidState)
			require.NoError(t, y.Pair(v))
			require.Equal(t, event.Established, nextEvent(t, yd.C()).Number)
			in, out := x.Reads()
			require.Positive(t, in)
			require.Positive(t, out)

			require.NoError(t, x.Disconnect(ep.Graceful))
			require.Equal(t, event.Disconnected, nextEvent(t, xd.C()).Number)
			require.Equal(t, event.Disconnected, nextEvent(t, yd.C()).Number)
			require.ErrorIs(t, x.Pair(w), hw.ErrInvalidState)
			require.NoError(t, x.Reset())
			require.NoError(t, y.Reset())
		}
		bad := last
		bad.QPN = hw.MaxQPN + 1
		require.ErrorIs(t, x.Pair(bad), hw.ErrInvalidParameter)
		for _, close := range []func() error{x.Close, y.Close, xd.Close, yd.Close, xz.Close, yz.Close} {
			require.NoError(t, close())
		}
		require.ErrorIs(t, x.Pair(last), hw.ErrInvalidHandle)
		_, err := x.PairAddr()
		require.ErrorIs(t, err, hw.ErrInvalidHandle)
	})
}

func TestACloseOfTheAdapterEndsAPairing(t *testing.T) {
	ia := open(t, "loop")
	p, err := ia.NewPaired(ConnConfig{})
	require.NoError(t, err)
	require.NoError(t, ia.Close())
	_, err = p.Connect(context.Background(), p.Local())
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	require.NoError(t, p.Close())
	_, err = ia.NewPaired(ConnConfig{})
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
}
