package conformance

import (
	"fmt"
	"slices"
	"strings"
)

// Gap is a way in which a provider differs from DAT and that is no lack of a
// capability. The cases that meet one demand what the gap says in place of what DAT
// says. It is a flag.Value, as in early,lax-reads.
type Gap uint

// The gaps.
const (
	// EarlyCompletion: a request completes when it has left, which may be before the
	// peer has found fault with it.
	EarlyCompletion Gap = 1 << iota
	// LaxReads: peers may read any region that has a remote context, and a read that is
	// refused is flushed.
	LaxReads
	// LaxCredit: an end takes more reads than it was told to take.
	LaxCredit
	// WakesForAll: who waits for a solicited receive is woken by any.
	WakesForAll
	// MayWakeForAll: any receive may wake a waiter that asked for solicited ones, when
	// something else makes the provider look at its completions.
	MayWakeForAll
)

var gapNames = []string{"early", "lax-reads", "lax-credit", "wakes-for-all", "may-wake-for-all"}

// Set implements flag.Value.
func (g *Gap) Set(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		i := slices.Index(gapNames, name)
		if i < 0 {
			return fmt.Errorf("%q is no gap, such as %s", name, strings.Join(gapNames, ","))
		}
		*g |= 1 << i
	}
	return nil
}

func (g *Gap) String() string {
	var names []string
	for i, name := range gapNames {
		if *g&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// differs reports whether the provider has a gap.
func (r *rig) differs(g Gap) bool { return r.p.Gaps&g != 0 }
