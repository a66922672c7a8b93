package target

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/intake"
	dat "godat/runtime"
)

// modes are those of the dispatchers of connections.
func modes(t *testing.T, ia *dat.IA) map[string]int {
	s, err := ia.Snapshot()
	require.NoError(t, err)
	all := map[string]int{}
	for _, d := range s.Dispatchers {
		if d.QLen > 32 { // of a queue
			all[d.Mode]++
		}
	}
	return all
}

func TestEachWayToTakeEventsReadsBackWhatWasWritten(t *testing.T) {
	mode := map[intake.Way]string{intake.Batches: "batch", intake.Channel: "channel", intake.Poll: "queue"}
	for _, way := range intake.Ways() {
		for _, provider := range []string{"loop", "iwarp"} {
			t.Run(string(way)+" on "+provider, func(t *testing.T) {
				f := start(t, provider, func(cfg *Config) { cfg.Intake = way })
				c := f.connect(func(cfg *host.Config) {
					cfg.Queues, cfg.Pipelines, cfg.Depth, cfg.Transfer, cfg.Intake = 0, 1, 9, 4096, way
				})
				p, err := c.Pipeline(f.within())
				require.NoError(f, err)
				d := f.disk(c, 1)
				want := noise(len(p.Slots()) * 4096)
				ctx, stop := context.WithCancel(f.within())
				n, err := p.KeepBusy(ctx, func(s *host.Slot) error {
					off := s.Index() * 4096
					copy(s.Data, want[off:])
					stop() // one command in each slot
					return p.Write(d, s, 4096, int64(off))
				})
				require.NoError(f, err)
				assert.EqualValues(f, len(p.Slots()), n)
				for i := range p.Slots() {
					s := &p.Slots()[i]
					clear(s.Data)
					require.NoError(f, p.Read(d, s, 4096, int64(i*4096)))
				}
				for done := 0; done < len(p.Slots()); {
					finished, err := p.Wait(f.within())
					require.NoError(f, err)
					for _, s := range finished {
						require.NoError(f, s.Err)
						assert.Equal(f, want[s.Index()*4096:][:4096], s.Data)
						done++
					}
				}
				assert.GreaterOrEqual(f, modes(t, f.ia)[mode[way]], 2, "at both ends: %v", modes(t, f.ia))
			})
		}
	}
}

func TestAWayThatThereIsNotIsRefused(t *testing.T) {
	ia, err := dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	_, err = New(t.Context(), ia, Config{Subsystem: subsystem, Intake: "telepathy"})
	require.ErrorContains(t, err, "telepathy")
	_, err = host.Connect(t.Context(), ia, host.Config{Intake: "telepathy"})
	require.ErrorContains(t, err, "telepathy")
	_, err = host.Connect(t.Context(), ia, host.Config{Intake: intake.Poll, Queues: 1})
	require.ErrorContains(t, err, "Pipelines alone")
	require.NoError(t, ia.CloseGraceful())
}
