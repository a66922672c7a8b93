//go:build linux && cgo

package ibv

import (
	"io/fs"
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// An attempt to connect may keep the kernel busy long after its owner has given it up.
func TestTheLastUserThatIsLeftFreesAClosedObject(t *testing.T) {
	var u users
	freed := 0
	free := func() error { freed++; return syscall.EBUSY }
	require.True(t, u.use())
	ended, err := u.close("op", &zones, free)
	assert.False(t, ended)
	assert.ErrorContains(t, err, "1 objects use the zone")
	u.leave()
	u.leave()
	u.unuse()
	ended, err = u.close("op", &zones, free)
	assert.True(t, ended)
	assert.NoError(t, err, "it is not freed, and so can't fail")
	assert.False(t, u.use(), "it is closed")
	u.depart()
	assert.Zero(t, freed)
	u.depart()
	assert.Equal(t, 1, freed)
	ended, err = u.close("op", &zones, free)
	assert.False(t, ended)
	assert.ErrorContains(t, err, "closed twice")

	var unused users
	ended, err = unused.close("op", &zones, free)
	assert.True(t, ended)
	assert.Equal(t, syscall.EBUSY, err)
	assert.Equal(t, 2, freed)
}

// A zone is freed behind the queues that are made in it.
func TestTheZoneIsTheLastOfAQueuePairsParts(t *testing.T) {
	p := parts{zone: &zone{}, send: &completionQueue{}, recv: &completionQueue{}, srq: &sharedQueue{}}
	var seen []*users
	p.each(func(u *users) { seen = append(seen, u) })
	require.Len(t, seen, 4)
	assert.Same(t, &p.zone.users, seen[3])
}

func TestAListenerOfNoAddressInParticularHasTheDevices(t *testing.T) {
	v4, v6 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	d := &device{addresses: []netip.Addr{v4, v6}}
	for addr, want := range map[string][]netip.Addr{
		"": {v4, v6}, "::": {v4, v6}, "0.0.0.0": {v4}, "::ffff:0.0.0.0": {v4},
		"192.0.2.1": {v4}, "2001:db8::1": {v6}, "192.0.2.9": {netip.MustParseAddr("192.0.2.9")},
	} {
		got, err := d.listenAddresses("", &hw.ListenConfig{Addr: addr, OnRequest: func(hw.Request) bool { return false }})
		require.NoError(t, err, addr)
		assert.Equal(t, want, got, addr)
	}
	assert.Equal(t, []netip.Addr{v4, v6}, d.addresses)
	d.addresses = []netip.Addr{v6}
	_, err := d.listenAddresses("", &hw.ListenConfig{Addr: "0.0.0.0", OnRequest: func(hw.Request) bool { return false }})
	assert.ErrorIs(t, err, hw.ErrInvalidAddress)
}

func TestWhatWaitsInASocketIsInTheSystemsTable(t *testing.T) {
	tables := map[string]string{
		"/proc/net/tcp": `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0F02000A:1138 00000000:0000 0A 00000000:00000007 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0F02000A:C350 0F02000A:1138 01 00000005:00000000 00:00000000 00000000     0        0 2 1 0 20 4 0 10 -1
   2: 0F02000A:1138 0F02000A:C350 01 00000009:0000002A 00:00000000 00000000     0        0 3 1 0 20 4 0 10 -1
`,
		"/proc/net/tcp6": `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt
   0: 0000C0FE000000000000000015000000:1138 0000C0FE000000000000000015000000:C350 01 00000000:00000011 00:00000000 00000000     0
`,
	}
	read := func(name string) ([]byte, error) {
		if text, ok := tables[name]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}
	at := netip.MustParseAddrPort
	here, there := at("10.0.2.15:4408"), at("10.0.2.15:50000")
	assert.Equal(t, 42, unread(here, there, read))
	assert.Equal(t, 0, unread(there, here, read))
	assert.Equal(t, 17, unread(at("[fec0::15]:4408"), at("[fec0::15]:50000"), read))
	assert.Equal(t, 0, unread(here, at("10.0.2.15:50001"), read), "no such connection")
	delete(tables, "/proc/net/tcp")
	assert.Equal(t, 0, unread(here, there, read), "no table")
}
