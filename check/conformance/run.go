package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
			watchLeaks(t, p)
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
