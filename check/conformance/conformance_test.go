package conformance

import (
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	_ "godat/hw/ibv"
	_ "godat/hw/iwarp"
	"godat/hw/sim"
	"godat/internal/owner"
	dat "godat/runtime"
)

// With -conformance.ia the suite runs on that adapter alone, for example in a
// guest:
//
//	conformance.test -test.run Conformance -conformance.ia ibv:rxe0 -conformance.table rxe -conformance.scale 1/256
var (
	onIA    = flag.String("conformance.ia", "", "run over this adapter alone, as in ibv:rxe0")
	onTable = flag.String("conformance.table", "", "its column of the table")
	absent  = flag.String("conformance.absent", "", "an address at which no adapter is")
	paired  = flag.Bool("conformance.paired", false, "two endpoints connect by exchanged values wherever a case does not say how")
	driven  = flag.Bool("conformance.driven", false, "the cases poll for their events, and the device with them")
	gaps    Gap
	scale   = Scale{1, 8}
	params  = map[string]string{}
)

func init() {
	if owner.Enabled { // the race detector makes everything slower
		scale = Scale{1, 32}
	}
	flag.DurationVar(&patience, "conformance.patience", patience, "how long to wait for what must happen")
	flag.Func("conformance.params", "the adapter's parameters, as in tail=on,inline=0", func(list string) error {
		for one := range strings.SplitSeq(list, ",") {
			name, value, _ := strings.Cut(one, "=")
			params[name] = value
		}
		return nil
	})
	flag.Var(&gaps, "conformance.gaps", "how the adapter differs")
	flag.Var(&scale, "conformance.scale", "what counts of iterations, threads and endpoints are multiplied with")
}

// keptBy returns a check that no user of a device of p broke the device's contract.
func keptBy(p *sim.Provider) func(testing.TB) {
	return func(tb testing.TB) { assert.Empty(tb, p.Violations()) }
}

// TestMain ignores the two goroutines of the pool that package runtime imports,
// which run from the beginning.
func TestMain(m *testing.M) {
	PeerProcess()
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

func TestConformance(t *testing.T) {
	if *onIA != "" {
		warmUp(t, *onIA)
		Run(t, Provider{Table: *onTable, IA: *onIA, Params: params, Absent: *absent, Gaps: gaps, Driven: *driven, Paired: *paired, Scale: scale})
		return
	}
	if testing.Short() {
		scale = Scale{1, 256}
	}
	t.Run("loop", func(t *testing.T) {
		Run(t, Provider{Table: "loop", IA: "loop", Absent: "loop:nobody", Scale: scale})
	})
	t.Run("loop, paired", func(t *testing.T) {
		Run(t, Provider{Table: "loop", IA: "loop", Absent: "loop:nobody", Paired: true, Scale: Scale{1, 256}})
	})
	iwarp := Provider{Table: "iwarp", IA: "iwarp:127.0.0.1", Absent: "no such host!", Gaps: EarlyCompletion, Scale: scale}
	t.Run("iwarp", func(t *testing.T) { Run(t, iwarp) })
	if testing.Short() { // a simulated device keeps a thread busy
		return
	}
	t.Run("sim", func(t *testing.T) {
		device := sim.New(sim.Config{Seed: 1})
		Run(t, Provider{
			Table: "sim", IA: "sim", Provider: device, Absent: "nobody", Scale: scale, After: keptBy(device),
		})
	})
	t.Run("sim, polled by its consumers", func(t *testing.T) {
		device := sim.New(sim.Config{Seed: 1})
		Run(t, Provider{
			Table: "sim", IA: "sim", Provider: device, Driven: true, Absent: "nobody", Scale: Scale{1, 256}, After: keptBy(device),
		})
	})
	t.Run("sim, paired", func(t *testing.T) {
		device := sim.New(sim.Config{Seed: 2})
		Run(t, Provider{
			Table: "sim", IA: "sim", Provider: device, Paired: true, Absent: "nobody", Scale: Scale{1, 256}, After: keptBy(device),
		})
	})
	iwarp.Scale = Scale{1, 256} // what differs shows in the first messages
	for name, params := range map[string]map[string]string{
		"iwarp without CRCs": {"crc": "false"},
		"iwarp with markers": {"markers": "true"},
	} {
		iwarp.Params = params
		t.Run(name, func(t *testing.T) { Run(t, iwarp) })
	}
	iwarp.Params, iwarp.IA = nil, overTLS+":127.0.0.1"
	t.Run("iwarp over TLS", func(t *testing.T) { Run(t, iwarp) })
}

// warmUp opens and closes an adapter. What a provider allocates for the first
// adapter and keeps for all others is then not counted as a case's leak.
func warmUp(t *testing.T, name string) {
	t.Helper()
	ia, err := dat.Open(t.Context(), name)
	require.NoError(t, err)
	require.NoError(t, ia.Close())
}

func TestTheTableHasEveryCaseOnce(t *testing.T) {
	says, err := column("loop")
	require.NoError(t, err)
	for _, c := range Cases() {
		assert.Contains(t, says, c.ID)
		delete(says, c.ID)
	}
	assert.Empty(t, says, "no such cases")
}
