package runtime

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
)

// A call of DAT that no provider can do returns DAT's type, and matches
// errors.ErrUnsupported.
func TestACallThatNoProviderSupportsIsUnsupported(t *testing.T) {
	ia := open(t, "loop")
	pz, err := ia.NewPZ()
	require.NoError(t, err)
	d, err := ia.NewDispatcher(channel(4))
	require.NoError(t, err)
	e, err := ia.NewEndpoint(ep.Config{PZ: pz, Conn: d})
	require.NoError(t, err)
	_, datagrams := ia.NewEndpoint(ep.Config{PZ: pz, Attr: &ep.Attr{ServiceType: 1}})
	for name, c := range map[string]struct {
		err error
		typ hw.Type
	}{
		"an endpoint of datagrams": {datagrams, hw.ModelNotSupported},
		"more than one path":       {e.Connect(ep.ConnectConfig{Qual: 1, Flags: ep.MultipathRequired}), hw.ModelNotSupported},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, c.err, errors.ErrUnsupported)
			requireCode(t, c.err, c.typ, hw.NoSubtype)
		})
	}
	s, err := e.Status()
	require.NoError(t, err)
	assert.Equal(t, ep.Unconnected, s.State)
}

func TestNoTwoProvidersAreRelated(t *testing.T) {
	useRegistry(t, testRegistry)
	for _, names := range [][2]string{{"loop", "loop"}, {"loop:a", "iwarp"}, {"here", "loop"}} {
		r, err := Related(names[0], names[1])
		require.NoError(t, err)
		assert.Equal(t, HAFalse, r)
	}
	for _, names := range [][2]string{{"nothing", "loop"}, {"loop", "nothing"}, {"stranger", "loop"}} {
		_, err := Related(names[0], names[1])
		requireCode(t, err, hw.ProviderNotFound, hw.NameNotRegistered)
	}
	_, err := Related("loop", "")
	requireCode(t, err, hw.InvalidParameter, hw.Arg1)

	r := register(t, hw.Info{Name: "related", Major: 2})
	_, err = Related("related", "related")
	require.NoError(t, err)
	assert.Empty(t, r.opened)
	require.NoError(t, hw.Unregister("related"), "it is not in use")
	require.NoError(t, hw.Register(r))
}

func TestAnAdapterIsDescribedWithoutBeingOpened(t *testing.T) {
	t.Setenv("DAT_OVERRIDE", filepath.Join(t.TempDir(), "absent"))
	bg := context.Background()
	q, err := Describe(bg, "loop:described")
	require.NoError(t, err)
	assert.Nil(t, q.Async)
	assert.Equal(t, "described", q.IA.AdapterName)
	assert.Equal(t, "loop", q.Provider.Name)

	r := register(t, hw.Info{Name: "once", Major: 2})
	_, err = Describe(bg, "once")
	require.NoError(t, err)
	require.Len(t, r.opened, 1)
	require.NoError(t, hw.Unregister("once"), "what was opened is closed again")
	require.NoError(t, hw.Register(r))
	_, err = Describe(bg, "nothing")
	requireCode(t, err, hw.ProviderNotFound, hw.NameNotRegistered)
}

func TestMorePathsMayBeAskedForButNotDemanded(t *testing.T) {
	ia := open(t, "loop")
	p := connect(t, ia, channel(16))
	p.establish(t)
	pz := p.pz
	e, err := ia.NewEndpoint(ep.Config{PZ: pz, Conn: p.events})
	require.NoError(t, err)
	requireCode(t, e.Connect(ep.ConnectConfig{Qual: 1, Flags: 4}), hw.InvalidParameter, hw.Arg8)
	requireCode(t, e.DupConnect(p.a, ep.ConnectConfig{Flags: ep.MultipathRequired}), hw.ModelNotSupported, hw.NoSubtype)
	requireCode(t, e.CommonConnect("a:1", ep.ConnectConfig{Flags: ep.MultipathRequired | ep.MultipathRequested}), hw.ModelNotSupported, hw.NoSubtype)
	require.NoError(t, e.Connect(ep.ConnectConfig{Addr: "nowhere", Qual: 1, Flags: ep.MultipathRequested}))
	require.Equal(t, event.Unreachable, (<-p.events.C()).Number)
}
