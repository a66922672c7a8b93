package conformance

import (
	_ "embed" // for a test binary that runs elsewhere, without the file
	"fmt"
	"slices"
	"strings"
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
		transactionCases, performanceCases, dtestCases, stateCases, moreStateCases, dtoCases, protectionCases, flagCases, evdCases, deliveryCases, togetherCases,
		cnoCases, descriptorCases, connectCases, serviceCases, processCases, windowCases, moreWindowCases, srqCases, extensionCases,
	} {
		all = append(all, area...)
	}
	return all
}

// managed are the cases, and cells of ST-1, that can't be over pairs, and why. The others that are about the
// connection manager use it over any provider.
var managed = map[string]string{
	"EXT-10":              "it counts the connects and requests of the connection that it makes",
	"ST-1/CON/dup_source": "a pair has no service that another endpoint could ask for a connection",
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
			switch {
			case r.managed(c.ID):
			case got == passes:
				c.run(r)
			default:
				t.Logf("without %s: the call says so", got)
			}
		})
	}
}

// managed reports that a case, or a cell, is left out because it can't be over pairs.
func (r *rig) managed(name string) bool {
	why := managed[name]
	if !r.p.Paired || why == "" {
		return false
	}
	r.Logf("not over pairs: %s: %s", name, why)
	return true
}

//go:embed testdata/table.txt
var tableText string

// column returns the table's column of one provider, by case.
func column(name string) (map[string]string, error) {
	var head []string
	at := -1
	says := make(map[string]string)
	for line := range strings.Lines(tableText) {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		switch {
		case len(f) == 0:
		case head == nil:
			head = f
			if at = slices.Index(head, name); at < 1 {
				return nil, fmt.Errorf("the table has no column %q", name)
			}
		case len(f) != len(head):
			return nil, fmt.Errorf("table: %q has %d fields in place of %d", f[0], len(f), len(head))
		case says[f[0]] != "":
			return nil, fmt.Errorf("table: %q is there twice", f[0])
		default:
			says[f[0]] = f[at]
		}
	}
	return says, nil
}
