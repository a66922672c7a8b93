package conformance

import (
	"errors"
	"math"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

var limitCases = []Case{
	{ID: "LIM-IA", Claim: "adapters can be opened until there are no more, twice as many times", run: limIA},
	{ID: "LIM-PZ", Claim: "zones can be made until there are no more", run: limPZ},
	{ID: "LIM-EVD", Claim: "dispatchers can be made until there are no more", run: limEVD},
	{ID: "LIM-EP", Claim: "endpoints can be made until there are no more", run: limEP},
	{ID: "LIM-PSP", Claim: "service points can be made until there are no more", run: limPSP},
	{ID: "LIM-LMR", Claim: "regions can be made until there are no more", run: limLMR},
	{ID: "LIM-RPOST", Claim: "an endpoint takes as many receives as its attributes say", run: limRPost},
	{ID: "LIM-SIZE_LMR", Claim: "a region that is too large is refused in order", run: limSizeLMR},
	{ID: "LIM-W", Claim: "several goroutines may go to the limit at once", run: limW},
}

// most is how many objects of a kind a limit case makes at most.
const most = 1000

// fill makes objects until n are there or the provider has no more, closes them,
// and makes as many again.
func (r *rig) fill(n int, make func() (func() error, error)) {
	r.Helper()
	n = r.p.Scale.of(n, 8)
	first := r.fillOnce(n, make)
	require.Positive(r, first)
	assert.Equal(r, first, r.fillOnce(n, make), "the second time")
}

func (r *rig) fillOnce(n int, make func() (func() error, error)) (made int) {
	r.Helper()
	var closes []func() error
	for made < n {
		c, err := make()
		if err != nil {
			require.ErrorIs(r, err, dat.ErrInsufficientResources)
			break
		}
		closes = append(closes, c)
		made++
	}
	for _, c := range closes {
		require.NoError(r, c())
	}
	return made
}

func limIA(r *rig) {
	r.fill(most/10, func() (func() error, error) {
		ia, err := dat.Open(r.soon(), r.p.IA, r.p.options()...)
		if err != nil {
			return nil, err
		}
		return ia.CloseGraceful, nil
	})
}

func limPZ(r *rig) { n := r.node(); r.fill(most, n.makePZ) }

func (n *node) makePZ() (func() error, error) {
	pz, err := n.ia.NewPZ()
	if err != nil {
		return nil, err
	}
	return pz.Close, nil
}

func limEVD(r *rig) { n := r.node(); r.fill(most, n.makeEVD) }

func (n *node) makeEVD() (func() error, error) {
	d, err := n.ia.NewDispatcher(dat.DispatcherConfig{QLen: 16})
	if err != nil {
		return nil, err
	}
	return d.Close, nil
}

func limEP(r *rig) {
	n := r.node()
	d := n.dispatcher(64)
	r.fill(most, n.makeEP(d))
}

func (n *node) makeEP(d *dat.Dispatcher) func() (func() error, error) {
	return func() (func() error, error) {
		ep, err := n.ia.NewEndpoint(dat.EndpointConfig{PZ: n.pz, Recv: d, Request: d, Conn: d})
		if err != nil {
			return nil, err
		}
		return ep.Close, nil
	}
}

func limPSP(r *rig) {
	n := r.node()
	d := n.dispatcher(64)
	r.fill(most/4, n.makePSP(d))
}

func (n *node) makePSP(d *dat.Dispatcher) func() (func() error, error) {
	return func() (func() error, error) {
		psp, err := n.ia.NewPSP(dat.PSPConfig{Dispatcher: d})
		if err != nil {
			return nil, err
		}
		return psp.Close, nil
	}
}

func limLMR(r *rig) { n := r.node(); r.fill(most, n.makeLMR) }

func (n *node) makeLMR() (func() error, error) {
	m, err := n.pz.Register(make([]byte, 4096), dat.AllPrivileges)
	if err != nil {
		return nil, err
	}
	return m.Free, nil
}

func limRPost(r *rig) {
	for _, depth := range []int{1, 16, 100} {
		e := r.node().end(attr(func(a *dat.EndpointAttr) { a.MaxRecvDTOs = depth }))
		p, err := e.ep.Query(dat.EndpointFieldAll)
		require.NoError(r, err)
		posted := 0
		for err == nil {
			if err = e.ep.PostRecv(uint64(posted), 0, e.mem.Segment(0, 4096)); err == nil {
				posted++
			}
		}
		require.ErrorIs(r, err, dat.ErrInsufficientResources)
		assert.Equal(r, p.Attr.MaxRecvDTOs, posted)
		assert.NoError(r, e.ep.Reset(), "in UNCONNECTED it does nothing")
		assert.ErrorIs(r, e.ep.PostRecv(0, 0, e.mem.Segment(0, 4096)), dat.ErrInsufficientResources,
			"and keeps the receives")
	}
}

func limSizeLMR(r *rig) {
	n := r.node()
	for size := 4096; size <= 1<<26; size *= 2 {
		m, err := n.pz.Alloc(size, dat.AllPrivileges, dat.WithUnmapOnFree())
		if err != nil {
			require.True(r, errors.Is(err, dat.ErrInsufficientResources) || errors.Is(err, dat.ErrLength), "%v", err)
			return
		}
		require.NoError(r, m.Free())
	}
	_, err := n.pz.Alloc(math.MaxInt, dat.AllPrivileges)
	require.True(r, errors.Is(err, dat.ErrInsufficientResources) || errors.Is(err, dat.ErrLength), "%v", err)
}

func limW(r *rig) {
	n := r.node()
	d := n.dispatcher(64)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, make := range []func() (func() error, error){n.makePZ, n.makeEVD, n.makeLMR, n.makeEP(d), n.makePSP(d)} {
				for range r.p.Scale.of(most/10, 4) {
					c, err := make()
					if !assert.NoError(r, err) || !assert.NoError(r, c()) {
						return
					}
				}
			}
		})
	}
	wg.Wait()
}
