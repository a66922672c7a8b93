package runtime

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
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
			cno, err := ia.NewCNO(CNOConfig{})
			require.NoError(t, err)
			var ds []*Dispatcher
			for range 4 {
				d, err := ia.NewDispatcher(DispatcherConfig{QLen: 64, CNO: cno})
				require.NoError(t, err)
				ds = append(ds, d)
			}
			require.NoError(t, ia.Async().ModifyCNO(cno))
			ds = append(ds, ia.Async())
			next := func() Event {
				for {
					var buf [1]Event
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
			lmr, err := pz.Alloc(64, AllPrivileges)
			require.NoError(t, err)
			cfg := EndpointConfig{PZ: pz, Recv: ds[0], Request: ds[1], Conn: ds[2]}
			a, err := ia.NewEndpoint(cfg)
			require.NoError(t, err)
			b, err := ia.NewEndpoint(cfg)
			require.NoError(t, err)
			psp, err := ia.NewPSP(PSPConfig{Dispatcher: ds[3]})
			require.NoError(t, err)
			require.NoError(t, a.Connect(ConnectConfig{Addr: ia.Attr().Address, Qual: psp.Qual()}))
			require.NoError(t, RequestOf(next()).Accept(b, nil))
			assert.Equal(t, Established, next().Number)
			assert.Equal(t, Established, next().Number)
			for i := range uint64(50) {
				require.NoError(t, b.PostRecv(2*i, Default, lmr.Segment(0, 8)))
				require.NoError(t, a.PostSend(2*i+1, Default, lmr.Segment(8, 8)))
				assert.Equal(t, 4*i+1, next().Cookie+next().Cookie)
			}
			require.NoError(t, a.Disconnect(Graceful))
			assert.Equal(t, Disconnected, next().Number)
			assert.Equal(t, Disconnected, next().Number)
		})
	}
}

func TestACNOLivesOnItsAdapter(t *testing.T) {
	ia, other := open(t, "loop"), open(t, "loop")
	cno, err := ia.NewCNO(CNOConfig{})
	require.NoError(t, err)
	_, err = other.NewDispatcher(DispatcherConfig{QLen: 1, CNO: cno})
	requireCode(t, err, hw.InvalidHandle, hw.HandleCNO)
	p, err := cno.Query(CNOFieldAll)
	require.NoError(t, err)
	assert.Equal(t, CNOParam{IA: ia}, p)
	d, err := ia.NewDispatcher(DispatcherConfig{QLen: 1, CNO: cno})
	require.NoError(t, err)
	q, err := d.Query(DispatcherFieldAll)
	require.NoError(t, err)
	assert.Same(t, ia, q.IA)
	assert.Same(t, cno, q.CNO)
	require.NoError(t, d.Close())
	q, err = ia.Async().Query(DispatcherFieldAll)
	require.NoError(t, err)
	assert.Same(t, ia, q.IA)

	requireCode(t, ia.CloseGraceful(), hw.InvalidState, hw.StateIAInUse)
	require.NoError(t, ia.Close())
	_, err = cno.Wait(context.Background())
	requireCode(t, err, hw.InvalidHandle, hw.HandleCNO)
	_, err = ia.NewCNO(CNOConfig{})
	requireCode(t, err, hw.InvalidHandle, hw.HandleIA)
}

func TestAnAgentMayNotCloseItsAdapter(t *testing.T) {
	ia := open(t, "loop")
	closed := make(chan error, 2)
	cno, err := ia.NewCNO(CNOConfig{Agent: func(*Dispatcher) {
		closed <- ia.Close()
		closed <- ia.CloseGraceful()
	}})
	require.NoError(t, err)
	d, err := ia.NewDispatcher(DispatcherConfig{QLen: 1, CNO: cno, Streams: StreamSoftware})
	require.NoError(t, err)
	require.NoError(t, d.PostSoftware(nil))
	requireCode(t, <-closed, hw.InvalidState, hw.NoSubtype)
	requireCode(t, <-closed, hw.InvalidState, hw.NoSubtype)
}
