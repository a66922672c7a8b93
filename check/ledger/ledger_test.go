package ledger

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/hw"
	"godat/hw/fault"
	"godat/hw/loop"
	"godat/hw/sim"
	dat "godat/runtime"
)

// faults is what the unreliable providers do wrong, and how often.
var faults = fault.Triggers{
	fault.FailSend: {Every: 4000}, fault.FailRecv: {Every: 6000}, fault.DelaySend: {Every: 1500},
	fault.BreakConn: {Every: 8000}, fault.LosePeer: {Every: 8000},
	fault.FailRegister: {Every: 20}, fault.FailNewQP: {Every: 10}, fault.FailConnect: {Every: 10},
}

// provider is a provider under test; open makes a fresh one for each run.
type provider struct {
	name     string
	adapters [2]string
	options  []dat.Option
	open     func(seed uint64) hw.Provider
	check    func(t *testing.T, p hw.Provider)
}

var providers = append([]provider{
	{
		name: "loop", adapters: [2]string{"loop:one", "loop:two"},
		open: func(uint64) hw.Provider { return loop.Provider{} },
	},
	simulated("sim"),
}, onThread()...)

func simulated(name string, options ...dat.Option) provider {
	return provider{
		name: name, adapters: [2]string{"sim:one", "sim:two"}, options: options,
		open: func(seed uint64) hw.Provider {
			return sim.New(sim.Config{Seed: seed})
		},
		check: func(t *testing.T, p hw.Provider) {
			assert.Empty(t, p.(*sim.Provider).Violations(), "what the device's user did against the contract")
		},
	}
}

func TestEveryPostCompletesExactlyOnce(t *testing.T) {
	procs := []int{1, 2, 8}
	for _, p := range providers {
		var all tally
		for i, n := range procs {
			for _, unreliable := range []bool{false, true} {
				if testing.Short() && unreliable == (i%2 == 0) {
					continue // half of the runs
				}
				p.account(t, &all, uint64(i), n, unreliable)
			}
		}
		if *opsFlag < fullRun {
			continue
		}
		for i := uint64(0); i < moreRuns && len(all.missing()) > 0; i++ {
			p.account(t, &all, 10+i, procs[i%3], i%2 != 0)
		}
		assert.Empty(t, all.missing(), "what has not happened on %s", p.name)
	}
}

// account runs the ledger for a sixth of the posts on n processors, and adds what
// happened to all.
func (p provider) account(t *testing.T, all *tally, round uint64, n int, unreliable bool) {
	kind := map[bool]string{false: "calm", true: "faulty"}[unreliable]
	t.Run(fmt.Sprintf("%s/round=%d/procs=%d/%s", p.name, round, n, kind), func(t *testing.T) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
		cfg := Config{
			Adapters: p.adapters, Seed: mix(seed, round), Ops: (*opsFlag + 5) / 6, Links: links(), Unreliable: unreliable,
			Patience: *patienceFlag, Options: p.options,
		}
		faulty := fault.Config{Seed: cfg.Seed}
		if unreliable {
			faulty.On = faults
		}
		inner := p.open(cfg.Seed)
		outer := fault.Wrap(inner, faulty)
		cfg.Providers = [2]hw.Provider{inner, inner}
		if unreliable {
			cfg.Providers = [2]hw.Provider{outer, outer}
		}
		r := Run(cfg)
		t.Logf("-ledger.seed=%d: %v", seed, r)
		assert.Empty(t, r.Complaints)
		assert.GreaterOrEqual(t, r.Posts(), cfg.Ops)
		if p.check != nil {
			p.check(t, inner)
		}
		all.add(r, outer)
	})
}

// fullRun is how many posts a run needs for everything to have happened.
const fullRun = 1_000_000

// moreRuns is how many further runs may try for what chance left out. On a fast
// machine a region is freed between a post and its transfer only a few times in a
// full run.
const moreRuns = 30

// tally adds up what the runs on a provider did.
type tally struct {
	what map[string]int64
}

func (a *tally) add(r *Report, f *fault.Provider) {
	if a.what == nil {
		a.what = make(map[string]int64)
	}
	for name, n := range r.Lived {
		a.what[name] += n
	}
	for s := range styles + 2 {
		a.what[s.String()] += r.Events[s.String()]
	}
	for _, s := range []hw.Status{
		hw.StatusSuccess, hw.StatusFlushed, hw.StatusLocalLength, hw.StatusLocalProtection, hw.StatusRemoteAccess,
		hw.StatusRemoteResponder, hw.StatusTransport, hw.StatusReceiverNotReady,
	} {
		a.what[s.String()] += r.Events[s.String()]
	}
	for k, on := range faults {
		if on != (fault.Trigger{}) {
			a.what[fault.Kind(k).String()] += int64(f.Fired(fault.Kind(k)))
		}
	}
	a.what["carried over"] += r.Carried
	a.what["suppressed"] += r.Quiet
	a.what["orphaned"] += r.Orphans
}

// missing returns what has never happened.
func (a *tally) missing() []string {
	var names []string
	for what, n := range a.what {
		if n == 0 {
			names = append(names, what)
		}
	}
	return names
}

func TestAnAbruptCloseInFullFlight(t *testing.T) {
	rounds := uint64(5)
	if testing.Short() {
		rounds = 2
	}
	for _, p := range providers {
		for i := range rounds {
			cfg := Config{Adapters: p.adapters, Seed: mix(seed, 100+i), Ops: 3000, Links: links(), AbruptClose: true, Patience: *patienceFlag, Options: p.options}
			inner := p.open(cfg.Seed)
			cfg.Providers = [2]hw.Provider{inner, inner}
			r := Run(cfg)
			assert.Empty(t, r.Complaints, "%s, -ledger.seed=%d: %v", p.name, seed, r)
			if p.check != nil {
				p.check(t, inner)
			}
		}
	}
}
