package target

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/nvme"
	dat "godat/runtime"
)

func TestTargetsOfOneSubsystemGiveTheirControllersOtherIDs(t *testing.T) {
	const pairs = 200
	same := 0
	for range pairs {
		var ids [2]uint16
		for i := range ids {
			cfg := Config{Subsystem: subsystem}
			require.NoError(t, cfg.complete())
			var r registry
			r.init(&cfg)
			ids[i] = r.add(&nvme.ConnectData{Host: "nqn.2026-01.test:host"}, "10.0.0.1/32").id
		}
		if ids[0] == ids[1] {
			same++
		}
	}
	assert.LessOrEqual(t, same, 2, "of %d pairs; each has one chance in 65519", pairs)
}

func TestTheIDsOfControllersAreThoseOfTheRange(t *testing.T) {
	cfg := Config{Subsystem: subsystem, Controllers: 8, HostControllers: 8, AddressControllers: 8, ControllerIDs: IDRange{100, 107}}
	require.NoError(t, cfg.complete())
	var r registry
	r.init(&cfg)
	seen := make(map[uint16]bool)
	for range 8 {
		c := r.add(&nvme.ConnectData{Host: "nqn.2026-01.test:host"}, "10.0.0.1/32")
		require.NotNil(t, c)
		assert.True(t, c.id >= 100 && c.id <= 107, "%d", c.id)
		seen[c.id] = true
	}
	assert.Len(t, seen, 8)
	for _, bad := range []IDRange{{0, 9}, {9, 1}, {1, 7}, {65000, 65535}} {
		cfg := Config{Subsystem: subsystem, Controllers: 8, ControllerIDs: bad}
		require.Error(t, cfg.complete(), "%v", bad)
	}
}

func TestNamespacesOfATargetHaveIdentitiesThatDiffer(t *testing.T) {
	ia, err := dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	defer func() { require.NoError(t, ia.Close()) }()
	s := newMemory(t, 4096)
	defer func() { require.NoError(t, s.Close()) }()
	id := identity.New()
	_, err = New(context.Background(), ia, Config{Subsystem: subsystem, Namespaces: []Namespace{{Store: s, ID: id}, {Store: s, ID: id}}})
	require.ErrorContains(t, err, "one disk")
	cfg := Config{Subsystem: subsystem, Namespaces: []Namespace{{Store: s}, {Store: s}}}
	require.NoError(t, cfg.complete())
	assert.NotEqual(t, cfg.Namespaces[0].ID, cfg.Namespaces[1].ID, "by default")

	f := start(t, "loop", nil)
	require.NoError(t, f.target.Set(8, Namespace{Store: newMemory(t, 4096), ID: id}))
	require.ErrorContains(t, f.target.Set(9, Namespace{Store: s, ID: id}), "one disk")
	require.NoError(t, f.target.Set(8, Namespace{Store: newMemory(t, 8192), ID: id}), "in the place of the first")
}

func TestHostsWithTheDefaultsAreTwoHosts(t *testing.T) {
	f := start(t, "loop", func(cfg *Config) { cfg.HostControllers = 1 })
	for range 2 {
		f.connect(func(cfg *host.Config) { cfg.ID = identity.ID{} })
	}
}
