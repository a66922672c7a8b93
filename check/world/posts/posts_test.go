package posts

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/check/world/program"
	"godat/hw"
	"godat/hw/fault"
	"godat/hw/iwarp"
	"godat/hw/loop"
	"godat/hw/sim"
	dat "godat/runtime"
)

var (
	opsFlag  = flag.Int64("posts.ops", 0, "posts to account for, on each provider; 0: as many as take seconds")
	seedFlag = flag.Uint64("posts.seed", 0, "decides the program's choices; 0 picks one")
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
	adapters [2]string // by host
	options  []dat.Option
	sockets  bool // it has sockets: it completes early, and the world's network stands for its troubles
	open     func(seed uint64) hw.Provider
}

var providers = append([]provider{
	{name: "loop", adapters: [2]string{"loop:one", "loop:two"}, open: func(uint64) hw.Provider { return loop.New() }},
	simulated("sim"),
	{
		name: "iwarp over TCP", adapters: [2]string{"iwarp:127.0.0.1", "iwarp:127.0.0.1"}, sockets: true,
		open: func(uint64) hw.Provider { return iwarp.New(iwarp.Config{}) },
	},
}, onThread()...)

func simulated(name string, options ...dat.Option) provider {
	return provider{
		name: name, adapters: [2]string{"sim:one", "sim:two"}, options: options,
		open: func(seed uint64) hw.Provider { return sim.New(sim.Config{Seed: seed}) },
	}
}

// run runs posts of a seed on a provider that has faults, or none.
func (p provider) run(t *testing.T, seed uint64, posts *Posts, on fault.Triggers) *fault.Provider {
	inner := p.open(seed)
	outer := fault.Wrap(inner, fault.Config{Seed: seed, On: on})
	with := hw.Provider(outer)
	if on == (fault.Triggers{}) {
		with = inner
	}
	before := heldResources()
	w := program.Over(seed, func(host string) (*dat.IA, error) {
		name := p.adapters[0]
		if host == Hosts[1] {
			name = p.adapters[1]
		}
		return dat.Open(context.Background(), name, append(p.options, dat.WithProvider(with))...)
	}, nil)
	posts.Early = p.sockets
	require.NoError(t, posts.Run(w))
	history, err := w.End()
	require.NoError(t, err, "-posts.seed=%d", *seedFlag)
	t.Logf("-posts.seed=%d: %s, %v", *seedFlag, history, posts.Did)
	before.compare(t)
	if device, ok := inner.(*sim.Provider); ok {
		assert.Empty(t, device.Violations(), "what the device's user did against the contract")
	}
	return outer
}

// The seeded world runs the program over a network in memory, by one thread, and repeats it. Here are any order of
// goroutines, real sockets, a simulated device, and faults of providers.
func TestEveryPostCompletesExactlyOnceOnRealProcessors(t *testing.T) {
	if *seedFlag == 0 {
		*seedFlag = uint64(time.Now().UnixNano())
	}
	require.GreaterOrEqual(t, *opsFlag, int64(0), "-posts.ops")
	if *opsFlag == 0 {
		*opsFlag = 20_000
	}
	procs := []int{1, 2, 8}
	for _, p := range providers {
		all := make(map[string]int64)
		for i, n := range procs {
			for _, unreliable := range []bool{false, true} {
				if (!testing.Short() || unreliable != (i%2 == 0)) && (!unreliable || !p.sockets) { // in short half of the runs
					p.account(t, all, uint64(i), n, unreliable)
				}
			}
		}
		if *opsFlag < fullRun || p.sockets {
			continue
		}
		for i := uint64(0); i < moreRuns && len(missing(all)) > 0; i++ {
			p.account(t, all, 10+i, procs[i%3], i%2 != 0)
		}
		assert.Empty(t, missing(all), "what has not happened on %s", p.name)
	}
}

// account runs the program for a sixth of the posts on n processors, and adds what happened to all.
func (p provider) account(t *testing.T, all map[string]int64, round uint64, n int, unreliable bool) {
	kind := map[bool]string{false: "calm", true: "faulty"}[unreliable]
	t.Run(fmt.Sprintf("%s/round=%d/procs=%d/%s", p.name, round, n, kind), func(t *testing.T) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
		posts := &Posts{Size: program.Size{Clients: 12}, Ops: (*opsFlag + 5) / 6, Unreliable: unreliable}
		if testing.Short() {
			posts.Clients = 6 // each link lives one life at least
		}
		on := fault.Triggers{}
		if unreliable {
			on = faults
		}
		f := p.run(t, mix(*seedFlag, round), posts, on)
		for what, n := range posts.Did {
			all[what] += n
		}
		for k, on := range faults {
			if on != (fault.Trigger{}) {
				all[fault.Kind(k).String()] += int64(f.Fired(fault.Kind(k)))
			}
		}
	})
}

const (
	// fullRun is how many posts a run needs for everything to have happened.
	fullRun = 1_000_000
	// moreRuns is how many further runs may try for what chance left out. On a fast machine a region is freed between a
	// post and its transfer only a few times in a full run.
	moreRuns = 30
)

// missing returns what has never happened.
func missing(all map[string]int64) (names []string) {
	want := []any{suppressed, orphaned, carriedOver}
	for a := range attempts {
		want = append(want, a)
	}
	for e := range endings {
		want = append(want, e)
	}
	for s := range styles + 2 {
		want = append(want, s)
	}
	for _, s := range []hw.Status{
		hw.StatusSuccess, hw.StatusFlushed, hw.StatusLocalLength, hw.StatusLocalProtection, hw.StatusRemoteAccess,
		hw.StatusRemoteResponder, hw.StatusTransport, hw.StatusReceiverNotReady,
	} {
		want = append(want, s)
	}
	for k, on := range faults {
		if on != (fault.Trigger{}) {
			want = append(want, fault.Kind(k))
		}
	}
	for _, what := range want {
		if name := fmt.Sprint(what); all[name] == 0 {
			names = append(names, name)
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
		if p.sockets {
			continue
		}
		for i := range rounds {
			p.run(t, mix(*seedFlag, 100+i), &Posts{Size: program.Size{Clients: 12}, Ops: 3000, AbruptClose: true}, fault.Triggers{})
		}
	}
}
