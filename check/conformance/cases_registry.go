package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	dat "godat/runtime"
)

var registryCases = []Case{
	{ID: "HW-7", Claim: "a provider is listed while it is registered, once, and not removed while it is in use", run: func(r *rig) {
		kind := r.registered()
		listed := func() (infos []hw.Info) {
			all, err := dat.Providers()
			require.NoError(r, err)
			return slices.DeleteFunc(all, func(i hw.Info) bool { return i.Name != kind })
		}
		require.Equal(r, []hw.Info{{Name: kind, Major: 2, Minor: 0, ThreadSafe: true}}, listed())
		require.ErrorIs(r, hw.Register(r.p.provider()), code(hw.ProviderAlreadyRegistered, 0))
		require.Len(r, listed(), 1)
		ia := r.openNamed(r.p.IA)
		require.ErrorIs(r, hw.Unregister(kind), code(hw.ProviderInUse, 0))
		require.NoError(r, ia.CloseGraceful())
		require.Len(r, listed(), 1)
		require.ErrorIs(r, hw.Unregister("nobody's"), code(hw.ProviderNotFound, hw.NameNotRegistered))
	}},
	{ID: "HW-9", Claim: "a name of the static registry opens the provider that stands behind it", run: func(r *rig) {
		kind := r.registered()
		_, device, _ := strings.Cut(r.p.IA, ":")
		file := filepath.Join(r.TempDir(), "dat.conf")
		text := fmt.Sprintf("# ours\nmy-ia u2.0 threadsafe default godat/%s our.1.0 %q \"\"\n"+
			"strange u2.0 nonthreadsafe default /usr/lib/libnobody.so.1 their.1.0 \"x 0\" \"\"\n", kind, device)
		require.NoError(r, os.WriteFile(file, []byte(text), 0o600))
		r.Setenv("DAT_OVERRIDE", file)
		ia := r.openNamed("my-ia")
		assert.Equal(r, r.open().Attr().Address, ia.Attr().Address)
		all, err := dat.Providers()
		require.NoError(r, err)
		assert.Contains(r, all, hw.Info{Name: "my-ia", Major: 2, Minor: 0, ThreadSafe: true})
		for _, name := range []string{"strange", "not there"} {
			assert.ErrorIs(r, errorOf(dat.Open(r.soon(), name)), hw.ErrProviderNotFound, name)
		}
	}},
	{ID: "HW-10", Claim: "adapters share a dispatcher for asynchronous errors, or have none", run: func(r *rig) {
		n := r.node()
		shared := n.dispatcher(8, event.StreamAsync)
		second := r.open(dat.WithAsync(shared))
		assert.Same(r, shared, second.Async())
		require.ErrorIs(r, shared.Close(), code(hw.InvalidState, hw.StateEVDInUse))
		require.NoError(r, second.CloseGraceful())
		require.NoError(r, shared.Close(), "no adapter has it any more")

		third := r.open(dat.WithAsync(nil))
		assert.Nil(r, third.Async())
	}},
	{ID: "HW-11", Claim: "each part of a name, version and thread-safety that is not there has its own subtype", run: func(r *rig) {
		r.registered()
		for _, c := range []struct {
			name string
			opt  dat.Option
			sub  hw.Subtype
		}{
			{"nobody's", dat.WithVersion(2, 0), 100},
			{r.p.IA, dat.WithVersion(9, 0), 101},
			{r.p.IA, dat.WithVersion(2, 9), 102},
		} {
			assert.ErrorIs(r, errorOf(dat.Open(context.Background(), c.name, c.opt)), code(hw.ProviderNotFound, c.sub), "%s, subtype %d", c.name, c.sub)
		}
		r.openNamed(r.p.IA, dat.WithVersion(2, 0), dat.WithThreadSafe())
		assert.ErrorIs(r, errorOf(dat.Open(context.Background(), "")), code(hw.InvalidParameter, hw.Arg1))
		assert.ErrorIs(r, errorOf(dat.Open(context.Background(), strings.Repeat("x", 256))), code(hw.InvalidParameter, hw.Arg1))
	}},
	{ID: "HW-12", Claim: "no adapter stands in for another, and there is one path between two", run: func(r *rig) {
		r.registered()
		client, server := r.pair()
		assert.NotNil(r, get(r, client.ep.Query).RemoteAddr, "the only one")
		other := r.node().end()
		assert.ErrorIs(r, errorOf(other.node.ia.NewEndpoint(ep.Config{PZ: client.node.pz, Conn: other.conn})), hw.ErrInvalidHandle, "what one adapter made is nothing to another of its name")
		require.NoError(r, client.node.ia.Close())
		assert.Contains(r, []event.Number{event.Disconnected, event.Broken}, r.next(server.conn).Number, "the other adapter does not take the connection over")
		assert.Equal(r, ep.Disconnected, server.ep.State())
		assert.Equal(r, ep.Unconnected, other.ep.State())
		for _, name := range []string{"nobody's", "nobody's:" + client.node.addr()} {
			require.ErrorIs(r, errorOf(dat.Open(context.Background(), name)), code(hw.ProviderNotFound, hw.NameNotRegistered), "an adapter that is open takes no other's place")
		}
	}},
	// ER-1 compares refusals with the numbers that a C program would get, with the class
	// bit.
	{ID: "ER-1", Claim: "errors have DAT's numbers, and texts", run: func(r *rig) {
		const class = 0x80000000
		n := r.node()
		d := n.software(4)
		e := n.end()
		_, noTime := n.cno().Trigger()
		var none *ep.Endpoint
		for name, c := range map[string]struct {
			err  error
			code uint32
		}{
			"INVALID_STATE/EP_UNCONNECTED":     {e.ep.PostSend(1, 0), class | 7<<16 | 47},
			"INVALID_HANDLE/EP":                {none.PostSend(1, 0), class | 5<<16 | 12},
			"INVALID_PARAMETER":                {e.ep.PostRecv(1, hw.Suppress), class | 6<<16},
			"PROTECTION_VIOLATION":             {e.ep.PostRecv(1, 0, n.region(n.zone(), 64, hw.AllPrivileges).Segment(0, 8)), class | 12<<16},
			"PRIVILEGES_VIOLATION":             {e.ep.PostRecv(1, 0, n.region(n.pz, 64, hw.LocalRead).Segment(0, 8)), class | 11<<16},
			"QUEUE_EMPTY":                      {noTime, class | 13<<16},
			"INVALID_STATE/IA_IN_USE":          {n.ia.CloseGraceful(), class | 7<<16 | 80},
			"INVALID_STATE/PZ_IN_USE":          {n.pz.Close(), class | 7<<16 | 83},
			"INVALID_STATE/EVD_IN_USE":         {e.recv.Close(), class | 7<<16 | 74},
			"INVALID_PARAMETER of no software": {e.recv.PostSoftware(1), class | 6<<16},
		} {
			var err *hw.Error
			require.ErrorAs(r, c.err, &err, name)
			const types = 0xFFFF0000
			if c.code&^types == 0 {
				assert.Equal(r, c.code, err.Code()&types, "%s: %v", name, err)
			} else {
				assert.Equal(r, c.code, err.Code(), "%s: %v", name, err)
			}
			major, minor := hw.Strerror(err.Code())
			assert.NotEmpty(r, major, name)
			assert.Equal(r, err.Sub != 0, minor != "", "%s: %q", name, minor)
		}
		require.NoError(r, d.Close())
	}},
}

// registered registers the provider for the duration of the case, unless it is
// registered already.
func (r *rig) registered() (kind string) {
	kind, _, _ = strings.Cut(r.p.IA, ":")
	if r.p.Provider != nil {
		require.NoError(r, hw.Register(r.p.Provider))
		r.last = func() { assert.NoError(r, hw.Unregister(kind)) }
	}
	return kind
}
