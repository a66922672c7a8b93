package ledger

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/fault"
)

// breach is a breach of the contract, and what the books must say of it. The
// provider breaches at one completion of the first adapter; all its completions are
// of sends until the connection ends.
type breach struct {
	fault  fault.Kind
	nth    int
	says   []Kind // the kinds of complaints, one of which must come
	spoils bool   // the breach spoils the library's own counts, so the run can't be cleaned up
}

var breaches = []breach{
	{fault.DropCompletion, 5, []Kind{Lost}, false},
	{fault.DoubleCompletion, 1, []Kind{Twice}, true},
	{fault.SwapCompletions, 5, []Kind{Disorder}, true},
}

// childVar is the environment variable that names the breach for a child process.
const childVar = "LEDGER_BREACH"

// noticed is a child's exit status when the books have complained as they must.
const noticed = 42

// Each breach that spoils the library's counts runs in a child process, which exits
// as soon as the books have complained: after that the state of the library shows
// nothing.
func TestABreachOfTheContractIsNoticed(t *testing.T) {
	for _, p := range providers {
		for i, x := range breaches {
			t.Run(fmt.Sprintf("%s/%v", p.name, x.fault), func(t *testing.T) {
				t.Parallel()
				if !x.spoils {
					p.mustNotice(t, x)
					return
				}
				child := exec.Command(os.Args[0], "-test.run=^TestChild$", fmt.Sprintf("-ledger.seed=%d", seed))
				child.Env = append(os.Environ(), fmt.Sprintf("%s=%s/%d", childVar, p.name, i))
				out, err := child.CombinedOutput()
				var exit *exec.ExitError
				require.ErrorAs(t, err, &exit, "%s", out)
				// Under the race detector the library may notice the breach first
				// and panic, or run out of room before the books have found the
				// cause.
				if !underRace {
					assert.Equal(t, noticed, exit.ExitCode(), "%s", out)
				}
			})
		}
	}
}

// mustNotice runs the ledger until its books complain as they must. A run waits for
// Patience, twice, so the first one has little of it. Where that was too little for
// what goes well, the other complaints hide the one, and the next run has more.
func (p provider) mustNotice(t *testing.T, x breach) {
	for patience := 50 * time.Millisecond; ; patience *= 2 {
		r := p.runWith(x, patience, nil)
		if slices.ContainsFunc(r.Complaints, x.wants) {
			return
		}
		require.NotEmpty(t, r.Complaints)
		require.Less(t, patience, 10*time.Second, "%v", r)
	}
}

func TestARunWithoutABreachHasNoComplaints(t *testing.T) {
	for _, p := range providers {
		r := p.runWith(breach{}, time.Minute, nil)
		assert.Empty(t, r.Complaints)
		assert.EqualValues(t, simplePosts+1, r.Requests)
	}
}

// TestChild is the body of the child process; elsewhere it does nothing.
func TestChild(t *testing.T) {
	which := os.Getenv(childVar)
	for _, p := range providers {
		for i, x := range breaches {
			if which != fmt.Sprintf("%s/%d", p.name, i) {
				continue
			}
			r := p.runWith(x, 10*time.Second, func(c Complaint) {
				fmt.Println(c)
				if x.wants(c) {
					os.Exit(noticed)
				}
			})
			t.Error(r)
		}
	}
}

func (x breach) wants(c Complaint) bool { return slices.Contains(x.says, c.Kind) }

// runWith runs the ledger with the breach's breach on the first adapter.
func (p provider) runWith(x breach, patience time.Duration, onComplaint func(Complaint)) *Report {
	cfg := fault.Config{Seed: seed}
	cfg.On[x.fault].Nth = x.nth
	inner := p.open(seed)
	return Run(Config{
		Providers: [2]hw.Provider{fault.Wrap(inner, cfg), inner}, Adapters: p.adapters,
		Seed: seed, Ops: 1, Links: 1, Simple: true, Patience: patience, OnComplaint: onComplaint,
	})
}
