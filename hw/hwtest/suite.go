package hwtest

import (
	"slices"
	"testing"
	"time"

	"godat/hw"
)

// Config says what TestProvider tests.
type Config struct {
	// Provider is the provider under test. Its devices either deliver completions to
	// sinks, or implement [hw.Polled]; the suite polls those.
	Provider hw.Provider
	// Devices names two devices that reach each other, or one device twice, which the
	// suite then opens twice.
	Devices [2]string
	// Params are the parameters of hw.OpenConfig for both devices.
	Params map[string]string
	// Unknown is an address at which no device can be reached; empty means a name that
	// no device has.
	Unknown string
	// Gaps are the provider's documented differences from the contract. The suite
	// probes each: it fails when a declared gap is absent, and when a gap is present
	// and not declared.
	Gaps Gap
	// Overtakes allows that the news of the connection's end overtakes the answer to a
	// send whose receive failed: the send is flushed then. It is a race, which no probe
	// can show.
	Overtakes bool
	// EndsUnderSends allows that the target's end of the connection reaches a request while
	// the device transmits it: the request fails with LocalEP then. It is a race, too.
	EndsUnderSends bool
	// Runs makes the suite post each plain request by [hw.Runner], which the queue pairs
	// then implement, and its sinks take plain successes one at a time.
	Runs bool
	// Paired makes the suite connect by [hw.Pairer] wherever a case does not say how.
	Paired bool
	// Consumers is how many goroutines help each device again and again, if it is a
	// [hw.Progresser].
	Consumers int
	// Groups are the names of the groups of cases to run, such as "send"; nil means
	// all.
	Groups []string
	// Patience bounds a case's wait for an event that must come; 0 means 10 s.
	Patience time.Duration
}

// contractCase tests one sentence of the contract.
type contractCase struct {
	name string
	run  func(r *rig)
}

// contractGroup is the cases about one subject.
type contractGroup struct {
	name  string
	cases []contractCase
}

// contract is the whole suite.
func contract() []contractGroup {
	return []contractGroup{
		{"device", deviceCases},
		{"memory", memoryCases},
		{"deregister", deregisterCases},
		{"send", sendCases},
		{"direct", runCases},
		{"rdma", rdmaCases},
		{"series", seriesCases},
		{"failure", failureCases},
		{"connect", connectCases},
		{"end", endCases},
		{"answer", answerCases},
		{"pair", pairCases},
		{"srq", srqCases},
		{"window", windowCases},
		{"invalidate", invalidateCases},
		{"polled", polledCases},
		{"traffic", trafficCases},
		{"gap", gapCases},
	}
}

// TestProvider tests a provider against the contract that package hw documents, with a
// subtest for each group and for each case in it. Each case opens the two devices, and
// closes everything that it made when it ends.
func TestProvider(t *testing.T, cfg Config) {
	t.Helper()
	cfg = cfg.withDefaults()
	for _, g := range contract() {
		if cfg.Groups != nil && !slices.Contains(cfg.Groups, g.name) {
			continue
		}
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) { c.run(newRig(t, cfg)) })
			}
		})
	}
}

// defaultPatience is Config.Patience if none is given.
const defaultPatience = 10 * time.Second

func (c Config) withDefaults() Config {
	if c.Patience == 0 {
		c.Patience = defaultPatience
	}
	if c.Unknown == "" {
		c.Unknown = "nobody-has-this-address"
	}
	return c
}
