package hwtest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/fault"
	"godat/hw/sim"
)

// recorder replaces the *testing.T of a case, so that the case can fail without failing
// the test that runs it.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	said     []string
	cleanups []func()
}

func (c *recorder) Helper()      {}
func (c *recorder) Log(...any)   {}
func (c *recorder) Name() string { return "recorded" }

func (c *recorder) Logf(string, ...any) {}

func (c *recorder) Cleanup(f func()) { c.cleanups = append(c.cleanups, f) }

func (c *recorder) Errorf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said = append(c.said, fmt.Sprintf(format, args...))
}

func (c *recorder) Error(args ...any) { c.Errorf("%s", fmt.Sprint(args...)) }
func (c *recorder) FailNow()          { c.Errorf("stopped"); runtime.Goexit() }

func (c *recorder) Fatalf(format string, args ...any) {
	c.Errorf(format, args...)
	runtime.Goexit()
}

func (c *recorder) Fatal(args ...any) { c.Fatalf("%s", fmt.Sprint(args...)) }

// failures runs one case and returns its failure messages.
func failures(t *testing.T, name string, cfg Config) []string {
	t.Helper()
	group, name, _ := strings.Cut(name, "/")
	all := contract()
	g := slices.IndexFunc(all, func(g contractGroup) bool { return g.name == group })
	require.GreaterOrEqual(t, g, 0, "no group %q", group)
	i := slices.IndexFunc(all[g].cases, func(c contractCase) bool { return strings.HasPrefix(c.name, name) })
	require.GreaterOrEqual(t, i, 0, "no case %q", name)
	rec := &recorder{TB: t}
	cfg.Devices = [2]string{"one", "two"}
	// A goroutine of its own may end by FailNow.
	together(func() { all[g].cases[i].run(newRig(rec, cfg.withDefaults())) }, func() {})
	for _, f := range slices.Backward(rec.cleanups) {
		together(f, func() {})
	}
	return rec.said
}

// teethPatience is the patience of cases that must fail: long enough for every event
// that does come.
const teethPatience = 150 * time.Millisecond

func TestTheSuiteSeesCompletionsLostDoubledAndSwapped(t *testing.T) {
	t.Parallel()
	const name = "send/messages arrive in the order posted"
	for _, in := range inners {
		require.Empty(t, failures(t, name, Config{Provider: in.make()}), "without a fault")
		for _, nth := range []int{1, 10} {
			for k, want := range map[fault.Kind]string{
				fault.DropCompletion: "waited in vain", fault.DoubleCompletion: "doubled", fault.SwapCompletions: "swapped",
			} {
				t.Run(fmt.Sprintf("%v of completion %d over %s", k, nth, in.name), func(t *testing.T) {
					t.Parallel()
					var on fault.Triggers
					on[k].Nth = nth
					f := fault.Wrap(in.make(), fault.Config{On: on})
					said := failures(t, name, Config{Provider: f, Patience: teethPatience})
					assert.Contains(t, strings.Join(said, "\n"), want)
					assert.Equal(t, 1, f.Fired(k))
				})
			}
		}
	}
}

func TestTheSuiteSeesAQueueThatEndsEarly(t *testing.T) {
	t.Parallel()
	const name = "end/flushes come in order"
	for _, in := range inners {
		require.Empty(t, failures(t, name, Config{Provider: in.make()}), "without a fault")
		f := fault.Wrap(in.make(), fault.Config{On: fault.Triggers{fault.EndEarly: {Nth: 1}}})
		said := failures(t, name, Config{Provider: f, Patience: teethPatience})
		assert.NotEmpty(t, said, "over %s", in.name)
	}
}

func TestTheSuiteSeesThatEstablishedIsMissing(t *testing.T) {
	t.Parallel()
	const name = "send/messages arrive in the order posted"
	for _, in := range inners {
		f := fault.Wrap(in.make(), fault.Config{On: fault.Triggers{fault.LoseEstablished: {Nth: 1}}})
		said := failures(t, name, Config{Provider: f, Patience: teethPatience})
		assert.NotEmpty(t, said, "over %s", in.name)
		assert.Equal(t, 1, f.Fired(fault.LoseEstablished))
	}
}

func TestTheSuiteSeesGapsThatAreNotAsDeclared(t *testing.T) {
	t.Parallel()
	for gap, name := range map[Gap]string{
		EarlyCompletion: "gap/EarlyCompletion", ImpliedLocalRead: "gap/ImpliedLocalRead", ImpliedLocalWrite: "gap/ImpliedLocalWrite",
	} {
		with, without := sim.New(sim.Config{
			EarlyCompletion:   gap == EarlyCompletion,
			ImpliedLocalRead:  gap == ImpliedLocalRead,
			ImpliedLocalWrite: gap == ImpliedLocalWrite,
		}), sim.New(sim.Config{})
		assert.Empty(t, failures(t, name, Config{Provider: with, Gaps: gap}), "%v", gap)
		assert.NotEmpty(t, failures(t, name, Config{Provider: with, Patience: teethPatience}), "%v is not declared", gap)
		assert.NotEmpty(t, failures(t, name, Config{Provider: without, Gaps: gap, Patience: teethPatience}), "%v is not there", gap)
	}
}

// bend is one way in which a device breaks the contract. A nil function changes nothing.
type bend struct {
	register func(mem []byte, priv hw.Privileges) ([]byte, hw.Privileges)
	config   func(cfg *hw.QPConfig)
	facts    func(hw.Facts) hw.Facts
	complete func(wcs []hw.WC)
	send     func(wr *hw.SendWR)
	connect  func(cfg *hw.ConnectConfig)
	accept   func(private []byte) []byte
	breaking func(orderly bool) bool
	drain    func(qp hw.QP)
	attr     func(*hw.Attr)
	refuse   func(err error) error
}

func TestTheSuiteSeesADeviceThat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bend  bend
		cases []string
	}{
		"checks no local privilege": {bend{register: func(m []byte, p hw.Privileges) ([]byte, hw.Privileges) {
			return m, p | hw.LocalRead
		}}, []string{"memory/each operation needs its privilege on the local side", "gap/ImpliedLocalRead"}},
		"checks no remote privilege": {bend{register: func(m []byte, p hw.Privileges) ([]byte, hw.Privileges) {
			return m, p | hw.RemoteWrite | hw.RemoteRead
		}}, []string{"memory/each operation needs its privilege on the remote side", "memory/a region has a remote key"}},
		"registers a byte too much": {bend{register: func(m []byte, p hw.Privileges) ([]byte, hw.Privileges) {
			return m[:min(len(m)+1, cap(m))], p
		}}, []string{"memory/local segments stay within", "memory/remote ranges stay within"}},
		"waits for no receive": {
			bend{config: func(cfg *hw.QPConfig) { cfg.NotReady = 0 }},
			[]string{"failure/a send waits for a receive", "end/Drain waits"},
		},
		"waits for a receive for ever": {
			bend{config: func(cfg *hw.QPConfig) { cfg.NotReady = hourLong }},
			[]string{"failure/a send that waited in vain", "failure/a send that finds no receive"},
		},
		"tells Down twice":        {bend{facts: func(f hw.Facts) hw.Facts { return doubledFacts{f} }}, []string{"end/an orderly Break"}},
		"tells Established twice": {bend{facts: func(f hw.Facts) hw.Facts { return doubledFacts{f} }}, []string{"send/a device connects to itself"}},
		"never tells of the end":  {bend{facts: func(f hw.Facts) hw.Facts { return withoutDown{f} }}, []string{"end/a Break that is not orderly"}},
		"loses the solicited flag": {
			bend{send: func(wr *hw.SendWR) { wr.Flags &^= hw.WRSolicited }},
			[]string{"send/a solicited send", "polled/a queue for solicited"},
		},
		"signals everything": {bend{send: func(wr *hw.SendWR) { wr.Flags |= hw.WRSignaled }}, []string{"send/a request that is not signaled and succeeds"}},
		"signals nothing":    {bend{send: func(wr *hw.SendWR) { wr.Flags &^= hw.WRSignaled }}, []string{"send/a message of any size"}},
		"takes any operation": {
			bend{refuse: func(error) error { return nil }},
			[]string{"send/an operation missing", "send/a refused request ends the batch"},
		},
		"reports every failure as a success": {bend{complete: func(wcs []hw.WC) {
			for i := range wcs {
				wcs[i].Status = hw.StatusSuccess
			}
		}}, []string{"failure/after a failure everything later", "end/flushes come in order", "memory/local segments are of"}},
		"reports the wrong failure": {bend{complete: func(wcs []hw.WC) {
			for i := range wcs {
				if wcs[i].Status != hw.StatusSuccess && wcs[i].Status != hw.StatusFlushed {
					wcs[i].Status = hw.StatusLocalEP
				}
			}
		}}, []string{"failure/a message too long", "memory/a made-up key", "deregister/a posted receive"}},
		"counts a byte too much": {bend{complete: func(wcs []hw.WC) {
			for i := range wcs {
				wcs[i].Len++
			}
		}}, []string{"send/a message of any size", "rdma/a read of any size"}},
		"mixes up its queues": {bend{complete: func(wcs []hw.WC) {
			for i := range wcs {
				wcs[i].CQ ^= 1
			}
		}}, []string{"send/messages arrive in the order"}},
		"truncates ids": {bend{complete: func(wcs []hw.WC) {
			for i := range wcs {
				wcs[i].ID &= 1<<62 - 1
			}
		}}, []string{"send/messages arrive in the order"}},
		"turns every Break orderly":      {bend{breaking: func(bool) bool { return true }}, []string{"end/a Break that is not orderly"}},
		"turns no Break orderly":         {bend{breaking: func(bool) bool { return false }}, []string{"end/an orderly Break"}},
		"drains by breaking the promise": {bend{drain: func(hw.QP) {}}, []string{"end/Drain with nothing outstanding"}},
		"cuts private data off": {bend{connect: func(cfg *hw.ConnectConfig) {
			cfg.Private = cfg.Private[:min(len(cfg.Private), 100)]
		}}, []string{"connect/private data of every size"}},
		"loses the accept's private data": {bend{accept: func([]byte) []byte { return nil }}, []string{"connect/private data of every size"}},
		"takes private data of any size": {
			bend{attr: func(a *hw.Attr) { a.MaxPrivate-- }},
			[]string{"connect/more private data"},
		},
		"has attributes that change": {bend{attr: func(a *hw.Attr) { a.Hardware[0] = int(time.Now().UnixNano()) }}, []string{"device/the attributes never change"}},
		"claims what it has not":     {bend{attr: func(a *hw.Attr) { a.Ops |= hw.Ops(hw.OpBind); a.MaxWindows = 1 }}, []string{"device/the attributes never change"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, one := range c.cases {
				require.Empty(t, failures(t, one, Config{Provider: sim.New(sim.Config{Seed: 1})}), "%s: the straight device", one)
				assert.True(t, seen(t, one, c.bend), "%s: the bent device", one)
			}
		})
	}
}

// seen says whether one of ten runs of the case fails on a device bent by b. A case that gives a
// device a moment to do something wrong can't see one that a busy machine keeps from doing it.
func seen(t *testing.T, name string, b bend) bool {
	t.Helper()
	for range 10 {
		if len(failures(t, name, Config{Provider: &bentProvider{sim.New(sim.Config{Seed: 1}), b}, Patience: teethPatience})) > 0 {
			return true
		}
	}
	return false
}

// bentProvider opens simulated devices that break the contract in the way of bend.
type bentProvider struct {
	*sim.Provider
	bend bend
}

func (p *bentProvider) Open(cfg hw.OpenConfig) (hw.Device, error) {
	dev, err := p.Provider.Open(cfg)
	if err != nil {
		return nil, err
	}
	return &bentDevice{dev.(*sim.Device), p.bend}, nil
}

type bentDevice struct {
	*sim.Device
	bend bend
}

func (d *bentDevice) Attr() hw.Attr {
	a := d.Device.Attr()
	if d.bend.attr != nil {
		d.bend.attr(&a)
	}
	return a
}

func (d *bentDevice) Register(z hw.Zone, mem []byte, priv hw.Privileges) (hw.MR, error) {
	if d.bend.register != nil {
		mem, priv = d.bend.register(mem, priv)
	}
	return d.Device.Register(z, mem, priv)
}

func (d *bentDevice) Poll(wcs []hw.WC) int {
	n := d.Device.Poll(wcs)
	if d.bend.complete != nil {
		d.bend.complete(wcs[:n])
	}
	return n
}

func (d *bentDevice) Listen(cfg hw.ListenConfig) (hw.Listener, error) {
	take := cfg.OnRequest
	cfg.OnRequest = func(r hw.Request) bool { return take(&bentRequest{r, d.bend}) }
	return d.Device.Listen(cfg)
}

func (d *bentDevice) NewQP(cfg hw.QPConfig) (hw.QP, error) {
	if d.bend.config != nil {
		d.bend.config(&cfg)
	}
	if d.bend.facts != nil {
		cfg.Facts = d.bend.facts(cfg.Facts)
	}
	qp, err := d.Device.NewQP(cfg)
	if err != nil {
		return nil, err
	}
	return &bentQP{qp, d.bend}, nil
}

type bentRequest struct {
	hw.Request
	bend bend
}

func (r *bentRequest) Accept(qp hw.QP, private []byte) error {
	if r.bend.accept != nil {
		private = r.bend.accept(private)
	}
	return r.Request.Accept(qp.(*bentQP).QP, private)
}

type bentQP struct {
	hw.QP
	bend bend
}

func (q *bentQP) PostSend(wrs []hw.SendWR) (int, error) {
	own := slices.Clone(wrs)
	for i := range own {
		if q.bend.send != nil {
			q.bend.send(&own[i])
		}
	}
	n, err := q.QP.PostSend(own)
	if err != nil && q.bend.refuse != nil {
		return len(wrs), q.bend.refuse(err)
	}
	return n, err
}

func (q *bentQP) Connect(cfg hw.ConnectConfig) error {
	if q.bend.connect != nil {
		q.bend.connect(&cfg)
	}
	return q.QP.Connect(cfg)
}

func (q *bentQP) Break(orderly bool) {
	if q.bend.breaking != nil {
		orderly = q.bend.breaking(orderly)
	}
	q.QP.Break(orderly)
}

func (q *bentQP) Drain() {
	if q.bend.drain != nil {
		q.bend.drain(q.QP)
		return
	}
	q.QP.Drain()
}

// doubledFacts passes each fact on twice.
type doubledFacts struct{ hw.Facts }

func (f doubledFacts) Established(i hw.ConnInfo) { f.Facts.Established(i); f.Facts.Established(i) }
func (f doubledFacts) Down(why hw.Reason, cause *hw.Cause) {
	f.Facts.Down(why, cause)
	f.Facts.Down(why, cause)
}

// withoutDown does not pass Down on.
type withoutDown struct{ hw.Facts }

func (withoutDown) Down(hw.Reason, *hw.Cause) {}
