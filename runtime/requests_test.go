package runtime

import (
	"testing"
	"time"

	"godat/ep"
	"godat/evd"
	"godat/hw/event"

	"github.com/stretchr/testify/require"
)

// A server with one dispatcher for everything answers messages, and leaves the requests
// of many strangers unanswered.
func TestRequestsTakeNoRoomFromConnectedEndpoints(t *testing.T) {
	for _, provider := range []string{"loop", "iwarp:127.0.0.1"} {
		for _, mode := range []evd.Mode{evd.ModeQueue, evd.ModeChannel, evd.ModeBatch} {
			t.Run(provider+"/"+mode.String(), func(t *testing.T) {
				const depth, strangers = 16, 64
				ia := open(t, provider)
				// Places for the requests and receives of both ends, and for events of
				// their connections.
				cfg := evd.Config{Mode: mode, QLen: 4*depth + 4}
				p := connect(t, ia, cfg)
				listener, err := ia.NewPSP(ep.PSPConfig{Dispatcher: p.events})
				require.NoError(t, err)
				silent, err := ia.NewDispatcher(evd.Config{QLen: 2 * strangers})
				require.NoError(t, err)
				for range strangers {
					e, err := ia.NewEndpoint(ep.Config{PZ: p.pz, Conn: silent})
					require.NoError(t, err)
					require.NoError(t, e.Connect(ep.ConnectConfig{Addr: ia.Attr().Address, Qual: listener.Qual()}))
				}
				require.Eventually(t, func() bool {
					c, err := ia.Counters()
					return err == nil && c.Requests == 1+strangers &&
						p.a.State() == ep.Connected && p.b.State() == ep.Connected
				}, time.Minute, time.Millisecond)
				for i := range uint64(depth) {
					for _, e := range []*ep.Endpoint{p.a, p.b} {
						require.NoError(t, e.PostRecv(i, 0, p.mem.Segment(0, 8)))
					}
				}
				for i := range uint64(depth) {
					for _, e := range []*ep.Endpoint{p.a, p.b} {
						require.NoError(t, e.PostSend(i, 0, p.mem.Segment(8, 8)))
					}
				}
				events := map[event.Number]int{}
				for ev := range p.events.Events(t.Context()) {
					require.NoError(t, ev.Err())
					events[ev.Number]++
					if events[event.DTOCompletion] == 4*depth && events[event.ConnectionRequest] == strangers && events[event.Established] == 2 {
						break
					}
				}
			})
		}
	}
}
