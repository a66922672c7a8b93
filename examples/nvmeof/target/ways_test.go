package target

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/store"
	dat "godat/runtime"
)

func TestADiscoveryControllerOfASilentHostEnds(t *testing.T) {
	f := start(t, "loop", nil)
	c := f.connect(func(cfg *host.Config) { cfg.Subsystem, cfg.KeepAlive = "", -1 })
	value, err := c.Admin(f.within(), nvme.GetFeature(nvme.FeatureKeepAlive), nil)
	require.NoError(t, err)
	assert.EqualValues(t, 120000, value)
}

// addresses are those of a machine with interfaces.
func addresses(all ...string) func() ([]net.Addr, error) {
	var list []net.Addr
	for _, text := range all {
		ip, prefix, err := net.ParseCIDR(text)
		if err != nil {
			panic(err)
		}
		list = append(list, &net.IPNet{IP: ip, Mask: prefix.Mask})
	}
	return func() ([]net.Addr, error) { return list, nil }
}

func TestTheDiscoveryLogHasAllWays(t *testing.T) {
	f := start(t, "loop", nil)
	f.target.interfaces = addresses("127.0.0.1/8", "::1/128", "10.0.0.2/24", "10.0.0.1/24", "fe80::1/64", "2001:db8::7/64")
	ways := func(everywhere bool, local string) (all [][2]any) {
		f.target.listeners[0].everywhere = everywhere
		for i, e := range f.target.waysFrom(f.target.listeners[0], local) {
			assert.EqualValues(t, i+1, e.Port, "each way has a number")
			assert.Equal(t, subsystem, e.Subsystem)
			assert.Equal(t, "4420", e.Service)
			all = append(all, [2]any{e.Address, e.IPv6})
		}
		return all
	}
	assert.Equal(t, [][2]any{{"10.0.0.1", false}}, ways(false, "10.0.0.1:4420"))
	assert.Equal(t, [][2]any{{"10.0.0.1", false}, {"10.0.0.2", false}, {"2001:db8::7", true}}, ways(true, "10.0.0.1:4420"))
	assert.Equal(t, [][2]any{{"127.0.0.1", false}, {"10.0.0.1", false}, {"10.0.0.2", false}, {"2001:db8::7", true}}, ways(true, "127.0.0.1:4420"))
	assert.Equal(t, [][2]any{{"fe80::1%eth0", true}}, ways(false, "[fe80::1%eth0]:4420"), "an address with a scope")
	require.NoError(t, f.target.SetElsewhere("10.0.0.9:4420", "10.0.0.1:4420", "[2001:db8::7]:4420"))
	assert.Equal(t, [][2]any{{"10.0.0.1", false}, {"10.0.0.9", false}, {"2001:db8::7", true}}, ways(false, "10.0.0.1:4420"), "each way once")
	require.Error(t, f.target.SetElsewhere("10.0.0.9"))
	require.NoError(t, f.target.SetElsewhere())
	f.target.interfaces = func() ([]net.Addr, error) { return nil, errors.New("none") }
	assert.Equal(t, [][2]any{{"10.0.0.1", false}}, ways(true, "10.0.0.1:4420"))

	for _, x := range []struct {
		adapter, address string
		want             bool
	}{
		{"iwarp", ":4420", true},
		{"iwarp", "", true},
		{"iwarp", "0.0.0.0:4420", true},
		{"iwarp", "[::]:4420", true},
		{"iwarp", "10.0.0.1:4420", false},
		{"iwarp:10.0.0.1", ":4420", false},
		{"ibv:rxe0", ":4420", false},
	} {
		assert.Equal(t, x.want, listensEverywhere(x.adapter, x.address), "%s %s", x.adapter, x.address)
	}
}

func TestADiscoveryLogThatIsLongIsReadInOneCommandOrInMany(t *testing.T) {
	onEach(t, func(f *fixture) {
		many := []string{"10.0.0.1/24", "10.0.0.2/24", "10.0.0.3/24", "10.0.0.4/24", "10.0.0.5/24", "10.0.0.6/24", "10.0.0.7/24"}
		f.target.interfaces, f.target.listeners[0].everywhere = addresses(many...), true
		c := f.connect(func(cfg *host.Config) { cfg.Subsystem = "" })
		entries, err := c.Discover(context.Background())
		require.NoError(f, err)
		require.Len(f, entries, 8)

		raw := rawQueue(f, f.ia, f.target, 0)
		connect := rawConnectTo(nvme.DiscoverySubsystem, 0, nvme.DynamicController)
		require.Equal(f, nvme.Success, rawExchange(f, raw, connect).Status)
		require.Equal(f, nvme.Success, rawExchange(f, raw, rawCommand(nvme.PropertySet(nvme.PropertyCC, nvme.ConfigEnable))).Status)
		read := func(offset uint64, n int) []byte {
			region, err := raw.Alloc(n, everything)
			require.NoError(f, err)
			command := nvme.GetLogPage(nvme.LogDiscovery, offset, uint32(n))
			where := region.Remote(0, n)
			command.Data = nvme.Descriptor{Type: nvme.Keyed, Address: where.Addr, Key: where.Context, Length: where.Len}
			require.Equal(f, nvme.Success, rawExchange(f, raw, rawCommand(command)).Status)
			return append([]byte(nil), region.Bytes()...)
		}
		whole := read(0, 9*nvme.DiscoveryEntryLen)
		generation, n, err := nvme.ParseDiscoveryHeader(whole)
		require.NoError(f, err)
		first := generation
		assert.EqualValues(f, 8, n)
		for i := range 8 {
			e, ok := nvme.ParseDiscoveryEntry(whole[(i+1)*nvme.DiscoveryEntryLen:])
			require.True(f, ok)
			assert.Equal(f, entries[i], e)
		}
		assert.Equal(f, whole[1024:6144], read(1024, 5120), "a part that is no whole number of pages")

		f.target.interfaces = addresses(many[:3]...)
		assert.Equal(f, whole[1024:], read(1024, 8192), "a host that goes on sees what it began with")
		generation, n, err = nvme.ParseDiscoveryHeader(read(0, 1024))
		require.NoError(f, err)
		assert.Equal(f, first+1, generation)
		assert.EqualValues(f, 4, n)
	})
}

func TestAHostOfDiscoveryLearnsOfOtherAddresses(t *testing.T) {
	onEach(t, func(f *fixture) {
		c, disks := f.connect(func(cfg *host.Config) { cfg.Subsystem = "" }), f.connect(nil)
		generation := func() uint64 {
			page := make([]byte, nvme.DiscoveryEntryLen)
			_, err := disks.Admin(f.within(), nvme.GetLogPage(nvme.LogDiscovery, 0, nvme.DiscoveryEntryLen), page)
			require.Error(f, err, "it is no discovery controller")
			other := f.connect(func(cfg *host.Config) { cfg.Subsystem, cfg.ID = "", [16]byte{9} })
			_, err = other.Admin(f.within(), nvme.GetLogPage(nvme.LogDiscovery, 0, nvme.DiscoveryEntryLen), page)
			require.NoError(f, err)
			g, _, err := nvme.ParseDiscoveryHeader(page)
			require.NoError(f, err)
			require.NoError(f, other.Close())
			return g
		}
		before, err := c.Discover(f.within())
		require.NoError(f, err)
		first := generation()
		assert.Equal(f, first, generation(), "each host hears of the same generation")
		for i, addrs := range [][]string{{"10.0.0.9:4420"}, {"10.0.0.9:4420", "10.0.0.8:4420"}, {}} {
			require.NoError(f, f.target.SetElsewhere(addrs...))
			require.NoError(f, f.target.SetElsewhere(addrs...), "no news")
			now, err := c.Rediscover(f.within())
			require.NoError(f, err)
			assert.Len(f, now, len(before)+len(addrs))
			assert.Equal(f, first+uint64(i)+1, generation())
		}
		why := errors.New("no more news")
		ctx, cancel := context.WithTimeoutCause(f.within(), 5*time.Millisecond, why)
		defer cancel()
		_, err = c.Rediscover(ctx)
		require.ErrorIs(f, err, why)
	})
}

func TestATargetWithSeveralListenersServesAtEachAndTellsOfAll(t *testing.T) {
	open := func(name string) *dat.IA {
		ia, err := dat.Open(t.Context(), name)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, ia.CloseGraceful()) })
		return ia
	}
	a, b := open("iwarp:127.0.0.1"), open("iwarp:127.0.0.2")
	s, err := store.NewMemory(diskSize)
	require.NoError(t, err)
	target, err := New(t.Context(), a, Config{Addr: "127.0.0.1:0", Subsystem: subsystem, Namespaces: []Namespace{{Store: s}}})
	require.NoError(t, err)
	addrs := []string{target.Addr()}
	for ia, addr := range map[*dat.IA]string{a: "127.0.0.1:0", b: "127.0.0.2:0"} {
		more, err := target.Listen(t.Context(), ia, addr)
		require.NoError(t, err)
		addrs = append(addrs, more)
	}
	_, err = target.Listen(t.Context(), a, addrs[0])
	require.Error(t, err, "it is taken")
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- target.Run(ctx) }()
	pattern := noise(4096)
	for i, addr := range addrs {
		c, err := host.Connect(t.Context(), a, host.Config{Addr: addr})
		require.NoError(t, err)
		ways, err := c.Discover(t.Context())
		require.NoError(t, err)
		var found []string
		for _, w := range ways {
			found = append(found, net.JoinHostPort(w.Address, w.Service))
		}
		assert.ElementsMatch(t, addrs, found)
		assert.Equal(t, addr, found[0], "the one that the host took is the first")
		require.NoError(t, c.Close())

		c, err = host.Connect(t.Context(), a, host.Config{Addr: addr, Subsystem: subsystem})
		require.NoError(t, err)
		d, err := c.Disk(t.Context(), 1)
		require.NoError(t, err)
		if i == 0 {
			_, err = d.WriteAt(pattern, 0)
			require.NoError(t, err)
		}
		require.NoError(t, d.Compare(pattern, 0), "the same disk")
		require.NoError(t, c.Close())
	}
	stop()
	require.NoError(t, <-ran)
}
