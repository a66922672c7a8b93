package target

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
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
		f.target.everywhere = everywhere
		for i, e := range f.target.waysFrom(local) {
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
		f.target.interfaces, f.target.everywhere = addresses(many...), true
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
		assert.EqualValues(f, 1, generation)
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
		assert.EqualValues(f, 2, generation)
		assert.EqualValues(f, 4, n)
	})
}
