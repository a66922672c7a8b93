package conformance

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

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

	// Paired makes two endpoints connect by exchanged values wherever a case does not say
	// how. Cases about requests, service points and processes still use these.
	Paired bool

	// Absent is an address of the provider's kind at which no adapter is.
	Absent string
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
	return append([]dat.Option{dat.WithProvider(p.Provider), dat.WithParams(p.Params)}, more...)
}

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
	// FailsHere: a send or write that the end of the connection overtakes may fail at this end,
	// with LOCAL_EP.
	FailsHere
	// UntoldEnd: over pairs, an end that is disconnected while its send waits for a receive
	// can't tell its peer, which finds the connection broken.
	UntoldEnd
	// SilentSuccess: suppressed requests that have succeeded count as outstanding until a later
	// request completes.
	SilentSuccess
)

var gapNames = []string{"early", "lax-reads", "lax-credit", "wakes-for-all", "may-wake-for-all", "fails-here", "untold-end", "silent"}

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

// Scale is a factor for the numbers of iterations, threads and endpoints. It is a
// flag.Value, as in 1/8.
type Scale struct{ num, den int64 }

// Set implements flag.Value.
func (s *Scale) Set(text string) error {
	r, ok := new(big.Rat).SetString(text)
	if !ok || r.Sign() <= 0 || !r.Num().IsInt64() || !r.Denom().IsInt64() {
		return fmt.Errorf("%q is no scale, such as 1 or 1/8", text)
	}
	s.num, s.den = r.Num().Int64(), r.Denom().Int64()
	return nil
}

func (s *Scale) String() string {
	if s.den == 0 {
		return "1"
	}
	return fmt.Sprintf("%d/%d", s.num, s.den)
}

// of scales n, but not below the smaller of least and n.
func (s Scale) of(n, least int) int {
	if s.den == 0 {
		return n
	}
	return max(int(int64(n)*s.num/s.den), min(n, least))
}
