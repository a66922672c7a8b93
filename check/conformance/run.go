package conformance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/hw"
	dat "godat/runtime"
)

// Provider is what the suite runs over.
type Provider struct {
	Table string // its column in the table
	IA    string // what both sides open, "iwarp:127.0.0.1"
	Scale Scale  // of iterations, threads and endpoints; the zero value is 1

	// Params are those of IA, where a case does not open it by its name alone.
	Params map[string]string

	// Provider is what the name of IA leads to, if it isn't registered.
	Provider hw.Provider

	// Driven has the cases poll for their events, and the device with them.
	Driven bool

	// Nobody is an address, of the provider's kind, where no adapter is.
	Nobody string
	// Gaps are its documented differences.
	Gaps Gap
	// After, if set, is called when a case is over and everything is closed.
	After func(testing.TB)
}

// provider is what the name of IA leads to.
func (p *Provider) provider() hw.Provider {
	if p.Provider != nil {
		return p.Provider
	}
	kind, _, _ := strings.Cut(p.IA, ":")
	registered, _ := hw.Lookup(kind)
	return registered
}

// options are how to open IA.
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
	Claim string // what it shows
	needs []*capability
	run   func(*rig)
}

// Cases are all cases, in the order they run.
func Cases() []Case {
	var all []Case
	for _, area := range [][]Case{
		hwconnCases, registryCases, endpointCases, pzCases, memCases, connmgtCases, queryCases, dormantCases, limitCases,
		transactionCases, performanceCases, dtestCases, stateCases, dtoCases, protectionCases, flagCases, evdCases, deliveryCases,
		cnoCases, descriptorCases, connectCases, serviceCases, processCases, windowCases, moreWindowCases, srqCases, extensionCases,
	} {
		all = append(all, area...)
	}
	return all
}

const passes = "pass"

// Run runs all cases over a provider, and demands of each what the table says.
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
