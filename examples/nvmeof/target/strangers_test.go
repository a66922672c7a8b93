package target

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
	dat "godat/runtime"
)

// squat makes n connections that send nothing.
func squat(f *fixture, n int) (all []*dat.Conn) {
	f.Helper()
	for range n {
		all = append(all, rawQueue(f, f.ia, f.target, 0))
	}
	return all
}

func TestSilentConnectionsKeepNoHostOut(t *testing.T) {
	for _, provider := range []string{"loop", "iwarp"} {
		t.Run(provider, func(t *testing.T) {
			f := start(t, provider, func(cfg *Config) { cfg.Queues, cfg.Controllers, cfg.AddressControllers = 2, 3, 3 })
			before := f.disk(f.connect(nil), 1)
			silent := squat(f, 5*3*3)
			for range 2 {
				d := f.disk(f.connect(nil), 1)
				_, err := d.WriteAt(noise(8192), 0)
				require.NoError(t, err, "a host that comes after them")
			}
			_, err := before.ReadAt(make([]byte, 8192), 0)
			require.NoError(t, err, "a host that came before them")
			require.Error(t, drain(f.within(), silent[0]), "the oldest one has given way")
			assert.LessOrEqual(t, len(f.target.strangers.all), 9)
		})
	}
}

// came is a queue from an address, without a connection.
func came(s *strangers, address string) *queue {
	q := &queue{address: address, evicted: make(chan struct{})}
	s.enter(q)
	return q
}

// here reports whether a queue has not given way.
func here(q *queue) bool {
	select {
	case <-q.evicted:
		return false
	default:
		return true
	}
}

func TestTheOldestConnectionOfTheGreediestAddressGivesWay(t *testing.T) {
	s := &strangers{most: 5, ofAddress: 3}
	host := came(s, "host")
	var greedy []*queue
	for range 4 {
		greedy = append(greedy, came(s, "a"))
	}
	assert.False(t, here(greedy[0]), "one too many of an address")
	assert.Len(t, s.all, 4)
	other := came(s, "b")
	assert.Len(t, s.all, 5)
	late := came(s, "c")
	assert.False(t, here(greedy[1]), "one too many in all")
	for _, q := range []*queue{host, greedy[2], greedy[3], other, late} {
		assert.True(t, here(q))
	}
	assert.True(t, s.leave(host), "it is connected")
	assert.False(t, s.leave(host))
	assert.False(t, s.leave(greedy[0]))
	came(s, "d")
	assert.Len(t, s.all, 5)
	assert.True(t, here(greedy[2]), "there is room again")
}

func TestAnAddressIsAnIPAddressOrAnIPv6Network(t *testing.T) {
	of := func(ip string) string { return addressOf(&net.TCPAddr{IP: net.ParseIP(ip), Port: 7}) }
	assert.Equal(t, "10.0.0.1/32", of("10.0.0.1"))
	assert.Equal(t, of("10.0.0.1"), of("::ffff:10.0.0.1"))
	assert.Equal(t, of("2001:db8::1"), of("2001:db8::ffff:1"))
	assert.NotEqual(t, of("2001:db8::1"), of("2001:db8:0:1::1"))
	assert.Equal(t, "fe80::/64", addressOf(&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}))
	assert.Equal(t, "loop", addressOf(&net.UnixAddr{Name: "loop"}))
}

func TestAnAddressHasNotAllControllersWhateverItsHostsSay(t *testing.T) {
	f := start(t, "loop", func(cfg *Config) { cfg.Controllers = 4 })
	for i := range 3 {
		f.connect(func(cfg *host.Config) { cfg.ID[0] = byte(i + 1) })
	}
	cfg := f.config()
	cfg.ID[0] = 9
	_, err := host.Connect(f.within(), f.ia, cfg)
	require.ErrorIs(t, err, nvme.StatusError(nvme.ConnectControllerBusy))
	assert.NotNil(t, f.target.controllers.add(&nvme.ConnectData{Host: "nqn.2026-01.test:elsewhere"}, "10.0.0.9/32"))
}
