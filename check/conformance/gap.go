package conformance

import (
	"fmt"
	"slices"
	"strings"
)

// Gap is a set of ways in which a provider differs from DAT though it lacks no
// capability. A case that meets a gap requires what the gap says in place of what
// DAT says. Gap is a flag.Value, as in early,lax-reads.
type Gap uint

// The gaps.
const (
	// EarlyCompletion: a request completes when it has left the sender, perhaps
	// before the peer refuses it.
	EarlyCompletion Gap = 1 << iota
	// LaxReads: peers may read every region that has a remote context, and a read
	// that is refused completes with FLUSHED.
	LaxReads
	// LaxCredit: an end accepts more reads than its attributes allow.
	LaxCredit
	// WakesForAll: any receive wakes a waiter that asked for solicited ones.
	WakesForAll
	// MayWakeForAll: any receive may wake a waiter that asked for solicited ones,
	// if something else makes the provider poll its completions.
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

// differs reports whether the provider has gap g.
func (r *rig) differs(g Gap) bool { return r.p.Gaps&g != 0 }
