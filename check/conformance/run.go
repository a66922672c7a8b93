package conformance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/hw"
	dat "godat/runtime"
)

// Provider is what the suite runs on.
type Provider struct {
	Table string // the provider's column in the table
	IA    string // the name of the adapter of both sides, as in iwarp:127.0.0.1
	Scale Scale  // of iterations, threads and endpoints; the zero value means 1

	// Params are the parameters with which IA is opened, except where a case opens
	// IA by its name alone.
	Params map[string]string

	// Provider is the provider of IA; nil means the one that is registered for it.
	Provider hw.Provider

	// Driven makes the cases poll for their events, and so poll the device.
	Driven bool

	// Nobody is an address of the provider's kind at which no adapter is.
	Nobody string
	// Gaps are the provider's documented differences from DAT.
	Gaps Gap
	// After, if set, is called after each case, when everything is closed.
	After func(testing.TB)
}

// provider returns the provider of IA.
func (p *Provider) provider() hw.Provider {
	if p.Provider != nil {
		return p.Provider
	}
	kind, _, _ := strings.Cut(p.IA, ":")
	registered, _ := hw.Lookup(kind)
	return registered
}

// options returns the options with which IA is opened.
func (p *Provider) options(more ...dat.Option) []dat.Option {
	options := []dat.Option{dat.WithProvider(p.Provider), dat.WithParams(p.Params)}
	if p.Driven {
		options = append(options, dat.WithPoller(dat.PollerConfig{ConsumerPolls: true}))
	}
	return append(options, more...)
}

// Case is one case of the suite.
type Case struct {
	ID    string
	Claim string // what the case shows
	needs []*capability
	run   func(*rig)
}

// Cases returns all cases in the order in which they run.
func Cases() []Case {
	var all []Case
	for _, area := range [][]Case{
		hwconnCases, registryCases, endpointCases, pzCases, memCases, connmgtCases, queryCases, dormantCases, limitCases,
		transactionCases, performanceCases, dtestCases, stateCases, moreStateCases, dtoCases, protectionCases, flagCases, evdCases, deliveryCases,
		cnoCases, descriptorCases, connectCases, serviceCases, processCases, windowCases, moreWindowCases, srqCases, extensionCases,
	} {
		all = append(all, area...)
	}
	return all
}

const passes = "pass"

// Run runs every case on a provider as a subtest, and requires for each the result
// in the table.
func Run(t *testing.T, p Provider) {
	t.Helper()
	want, err := column(p.Table)
	require.NoError(t, err)
	for _, c := range Cases() {
		t.Run(c.ID, func(t *testing.T) {
			r := newRig(t, p)
			got := passes
			if lack := r.lacks(c.needs); lack != nil {
				got = lack.name
			}
			require.Equal(t, want[c.ID], got, "%s: the table says otherwise", c.Claim)
			if got == passes {
				c.run(r)
			} else {
				t.Logf("without %s: the call says so", got)
			}
		})
	}
}
