package hwtest

import (
	"slices"
	"testing"
	"time"

	"godat/hw"
)

// Config says what TestProvider runs on.
type Config struct {
	// Provider is what is tested. Its devices either complete by themselves, or
	// are polled; the suite finds out and polls them.
	Provider hw.Provider
	// Devices names two devices that reach each other, or twice the same one,
	// which then is opened twice.
	Devices [2]string
	// Params are those that the devices are opened with.
	Params map[string]string
	// Unknown is an address at which nothing can be reached.
	Unknown string
	// Gaps are the provider's documented differences from the contract. Each is
	// probed: one that is declared and not there fails, as does the reverse.
	Gaps Gap
	// Groups are the parts of the contract to test, as "send"; nil means all.
	Groups []string
	// Patience is how long a case waits for what must happen; 0 means 10 s.
	Patience time.Duration
}

// contractCase is one sentence of the contract.
type contractCase struct {
	name string
	run  func(r *rig)
}

// contractGroup is the sentences about one thing.
type contractGroup struct {
	name  string
	cases []contractCase
}

// contract is all of it.
func contract() []contractGroup {
	return []contractGroup{
		{"device", deviceCases},
		{"memory", memoryCases},
		{"deregister", deregisterCases},
		{"send", sendCases},
		{"rdma", rdmaCases},
		{"failure", failureCases},
		{"cause", causeCases},
		{"connect", connectCases},
		{"end", endCases},
		{"srq", srqCases},
		{"window", windowCases},
		{"invalidate", invalidateCases},
		{"polled", polledCases},
		{"traffic", trafficCases},
		{"gap", gapCases},
	}
}

// TestProvider tests a provider against the contract that package hw documents.
// Each case opens the two devices afresh and takes everything down again.
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

func (c Config) withDefaults() Config {
	if c.Patience == 0 {
		c.Patience = 10 * time.Second
	}
	if c.Unknown == "" {
		c.Unknown = "nobody-has-this-address"
	}
	return c
}
