package conformance

import (
	"errors"
	"math"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/dattest/limit"
	dat "godat/runtime"
)

var limitCases = []Case{
	{ID: "LIM-IA", Claim: "adapters can be opened until there are no more, twice as many times", run: exhausts("limit_ia", most/10)},
	{ID: "LIM-PZ", Claim: "zones can be made until there are no more", run: exhausts("limit_pz", most)},
	{ID: "LIM-EVD", Claim: "dispatchers can be made until there are no more", run: exhausts("limit_evd", most)},
	{ID: "LIM-EP", Claim: "endpoints can be made until there are no more", run: exhausts("limit_ep", most)},
	{ID: "LIM-PSP", Claim: "service points can be made until there are no more", run: exhausts("limit_psp", most/4)},
	{ID: "LIM-LMR", Claim: "regions can be made until there are no more", run: exhausts("limit_lmr", most)},
	{ID: "LIM-RPOST", Claim: "an endpoint takes as many receives as its attributes say", run: func(r *rig) {
		for _, depth := range []int{1, 16, 100} {
			e := r.node().end(attr(func(a *dat.EndpointAttr) { a.MaxRecvDTOs = depth }))
			p := query(r, e.ep.Query, dat.EndpointFieldAll)
			for i := range p.Attr.MaxRecvDTOs {
				e.postRecv(uint64(i), 4096)
			}
			full := func(why string) {
				assert.ErrorIs(r, e.ep.PostRecv(0, 0, e.mem.Segment(0, 4096)), dat.ErrInsufficientResources, why)
			}
			full("these are all")
			assert.NoError(r, e.ep.Reset(), "in UNCONNECTED it does nothing")
			full("and keeps the receives")
		}
	}},
	{ID: "LIM-SIZE_LMR", Claim: "a region that is too large is refused in order", run: func(r *rig) {
		r.exhaust("limit_size_lmr", most)
		_, err := r.node().pz.Alloc(math.MaxInt, dat.AllPrivileges)
		require.True(r, errors.Is(err, dat.ErrInsufficientResources) || errors.Is(err, dat.ErrLength), "%v", err)
	}},
	{ID: "LIM-W", Claim: "several goroutines may go to the limit at once", run: func(r *rig) {
		for _, kind := range []string{"limit_pz", "limit_evd", "limit_lmr", "limit_ep", "limit_psp"} {
			test, err := limit.Find(kind)
			require.NoError(r, err)
			_, err = test.Results(r.soon(), limit.Config{IA: r.open(), Width: 4, Maximum: r.p.Scale.of(most/10, 4)})
			require.NoError(r, err)
		}
	}},
}

func exhausts(kind string, n int) func(*rig) { return func(r *rig) { r.exhaust(kind, n) } }

// most is how many objects of one kind a limit case makes at most.
const most = 1000
