package runtime

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/hw/sim"
)

// One CNO leads to all events of a connection's life.
func TestOneCNOServesAllDispatchers(t *testing.T) {
	for name, opts := range map[string][]Option{
		"loop": nil,
		"sim":  {WithProvider(sim.New(sim.Config{}))},
	} {
		t.Run(name, func(t *testing.T) {
			ia := open(t, name, opts...)
			cno, err := ia.NewCNO(evd.CNOConfig{})
			require.NoError(t, err)
			var ds []*evd.Dispatcher
			for range 4 {
				d, err := ia.NewDispatcher(evd.Config{QLen: 64, CNO: cno})
				require.NoError(t, err)
				ds = append(ds, d)
			}
			require.NoError(t, ia.Async().ModifyCNO(cno))
			ds = append(ds, ia.Async())
			next := func() event.Event {
				for {
					var buf [1]event.Event
					for _, d := range ds {
						n, err := d.Dequeue(buf[:])
						require.NoError(t, err)
						if n == 1 {
							return buf[0]
						}
					}
					ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
					_, err := cno.Wait(ctx)
					cancel()
					require.NoError(t, err, "a wake-up was lost")
				}
			}
			pz, err := ia.NewPZ()
			require.NoError(t, err)
			lmr, err := pz.Alloc(64, hw.AllPrivileges)
			require.NoError(t, err)
			cfg := ep.Config{PZ: pz, Recv: ds[0], Request: ds[1], Conn: ds[2]}
			a, err := ia.NewEndpoint(cfg)
			require.NoError(t, err)
			b, err := ia.NewEndpoint(cfg)
			require.NoError(t, err)
			psp, err := ia.NewPSP(ep.PSPConfig{Dispatcher: ds[3]})
			require.NoError(t, err)
			require.NoError(t, a.Connect(ep.ConnectConfig{Addr: ia.Attr().Address, Qual: psp.Qual()}))
			require.NoError(t, ep.RequestOf(next()).Accept(b, nil))
			assert.Equal(t, event.Established, next().Number)
			assert.Equal(t, event.Established, next().Number)
			for i := range uint64(50) {
				require.NoError(t, b.PostRecv(2*i, hw.Default, lmr.Segment(0, 8)))
				require.NoError(t, a.PostSend(2*i+1, hw.Default, lmr.Segment(8, 8)))
				assert.Equal(t, 4*i+1, next().Cookie+next().Cookie)
			}
			require.NoError(t, a.Disconnect(ep.Graceful))
			assert.Equal(t, event.Disconnected, next().Number)
			assert.Equal(t, event.Disconnected, next().Number)
		})
	}
}

func TestACNOLivesOnItsAdapter(t *testing.T) {
	ia, other := open(t, "loop"), open(t, "loop")
	cno, err := ia.NewCNO(evd.CNOConfig{})
	require.NoError(t, err)
	_, err = other.NewDispatcher(evd.Config{QLen: 1, CNO: cno})
	requireCode(t, err, hw.InvalidHandle, hw.HandleCNO)
	requireIA(t, ia, cno)
	d, err := ia.NewDispatcher(evd.Config{QLen: 1, CNO: cno})
	require.NoError(t, err)
	q, err := d.Query()
	require.NoError(t, err)
	assert.Same(t, cno, q.CNO)
	requireIA(t, ia, d)
	require.NoError(t, d.Close())
	requireIA(t, ia, ia.Async())

	requireCode(t, ia.CloseGraceful(), hw.InvalidState, hw.StateIAInUse)
	require.NoError(t, ia.Close())
	_, err = cno.Wait(context.Background())
	requireCode(t, err, hw.InvalidHandle, hw.HandleCNO)
	_, err = ia.NewCNO(evd.CNOConfig{})
	requireCode(t, err, hw.InvalidHandle, hw.HandleIA)
}

func TestAnAgentMayNotCloseItsAdapter(t *testing.T) {
	ia := open(t, "loop")
	closed := make(chan error, 2)
	cno, err := ia.NewCNO(evd.CNOConfig{Agent: func(*evd.Dispatcher) {
		closed <- ia.Close()
		closed <- ia.CloseGraceful()
	}})
	require.NoError(t, err)
	d, err := ia.NewDispatcher(evd.Config{QLen: 1, CNO: cno, Streams: event.StreamSoftware})
	require.NoError(t, err)
	require.NoError(t, d.PostSoftware(nil))
	requireCode(t, <-closed, hw.InvalidState, hw.NoSubtype)
	requireCode(t, <-closed, hw.InvalidState, hw.NoSubtype)
}
