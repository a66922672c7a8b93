package ibv

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// fakePort writes a port's directory as the kernel shows it, and reads it.
func fakePort(t *testing.T, files map[string]string) port {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600))
	}
	p, err := readPort(dir)
	require.NoError(t, err)
	return p
}

// ethernet is a port of an adapter with one address. The kernel keeps a GID of both versions
// of RoCE for each address.
func ethernet(t *testing.T) port {
	return fakePort(t, map[string]string{
		"gids/0": "fe80:0000:0000:0000:5054:00ff:fe12:3456", "gid_attrs/types/0": "IB/RoCE v1",
		"gids/1": "fe80:0000:0000:0000:5054:00ff:fe12:3456", "gid_attrs/types/1": "RoCE v2",
		"gids/2": "0000:0000:0000:0000:0000:ffff:0a00:020f", "gid_attrs/types/2": "IB/RoCE v1",
		"gids/3": "0000:0000:0000:0000:0000:ffff:0a00:020f", "gid_attrs/types/3": "RoCE v2",
		"gids/10": "0000:0000:0000:0000:0000:ffff:0a00:0210", "gid_attrs/types/10": "RoCE v2",
		"gids/11": "0000:0000:0000:0000:0000:0000:0000:0000", // not in use
		"pkeys/0": "0xffff", "pkeys/1": "0x0000", "pkeys/2": "0x8001",
	})
}

func TestTheGIDIsThatOfTheDevicesAddressAndRoCEv2(t *testing.T) {
	p := ethernet(t)
	for want, c := range map[int]struct {
		choice string
		own    string
	}{3: {"", "10.0.2.15"}, 10: {"", "10.0.2.16"}, 2: {"roce_v1", "10.0.2.15"}, 1: {"1", "10.0.2.15"}} {
		choice := gidChoice{index: -1}
		if c.choice != "" {
			var err error
			choice, err = parseGID(c.choice)
			require.NoError(t, err)
		}
		g, err := p.choose(choice, netip.MustParseAddr(c.own))
		require.NoError(t, err)
		assert.Equal(t, want, g.index, "%+v", c)
	}
	g, err := p.choose(gidChoice{index: -1}, netip.MustParseAddr("192.0.2.1"))
	require.NoError(t, err)
	assert.Equal(t, 3, g.index, "an address of another device: no link-local GID")
}

func TestThePortIsReadAgainWhenItsGIDHasGone(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for _, n := range []string{"0", "1"} {
		write("gids/"+n, "0000:0000:0000:0000:0000:ffff:0a00:020f")
	}
	write("gid_attrs/types/0", "RoCE v2")
	write("gid_attrs/types/1", "IB/RoCE v1")
	var f foundGID
	index := func() int {
		g, err := f.choose("op", dir, gidChoice{index: -1}, netip.MustParseAddr("10.0.2.15"))
		require.NoError(t, err)
		return g.index
	}
	assert.Equal(t, 0, index())
	write("gid_attrs/types/1", "RoCE v2")
	assert.Equal(t, 0, index(), "the GID that it found is still there")
	write("gids/0", "0000:0000:0000:0000:0000:0000:0000:0000")
	assert.Equal(t, 1, index())
	write("gids/1", "0000:0000:0000:0000:0000:ffff:0a00:0210")
	g, err := f.choose("op", dir, gidChoice{index: -1}, netip.Addr{})
	require.NoError(t, err)
	assert.EqualValues(t, 0x10, g.addr[15], "the address of the GID has changed")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "gids")))
	_, err = f.choose("op", dir, gidChoice{index: -1}, netip.Addr{})
	require.ErrorIs(t, err, hw.ErrInternal)
}

func TestAGIDThatWasTakenWhileABetterOneWasAwayIsNotKept(t *testing.T) {
	const linkLocal, own, other = "fe80:0000:0000:0000:5054:00ff:fe12:3456", "0000:0000:0000:0000:0000:ffff:0a00:020f", "0000:0000:0000:0000:0000:ffff:0a00:0210"
	for name, c := range map[string]struct {
		choice      gidChoice
		gid, kind   string // what was there first
		better      string // the kind of the GID of the device's address, which comes behind it
		taken, kept int
	}{
		"link-local":           {gidChoice{index: -1}, linkLocal, "RoCE v2", "RoCE v2", 0, 1},
		"another address":      {gidChoice{index: -1}, other, "RoCE v2", "RoCE v2", 0, 1},
		"version 1":            {gidChoice{index: -1}, own, "IB/RoCE v1", "RoCE v2", 0, 1},
		"a kind was asked for": {gidChoice{kind: kindRoCEv1, index: -1}, linkLocal, "IB/RoCE v1", "IB/RoCE v1", 0, 1},
		"an index":             {gidChoice{index: 0}, linkLocal, "RoCE v2", "RoCE v2", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(index, gid, kind string) {
				for file, text := range map[string]string{"gids/" + index: gid, "gid_attrs/types/" + index: kind} {
					require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700))
					require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
				}
			}
			var f foundGID
			chosen := func() int {
				g, err := f.choose("op", dir, c.choice, netip.MustParseAddr("10.0.2.15"))
				require.NoError(t, err)
				return g.index
			}
			write("0", c.gid, c.kind)
			assert.Equal(t, c.taken, chosen())
			write("1", own, c.better)
			assert.Equal(t, c.kept, chosen())
		})
	}
}

func TestAWrongPathParameterIsAnErrorThatListsWhatThePortHas(t *testing.T) {
	p := ethernet(t)
	_, err := p.choose(gidChoice{index: 4}, netip.Addr{})
	require.EqualError(t, err, "the port has no GID 4, only 0 (roce_v1 fe80::5054:ff:fe12:3456), 1 (roce_v2 fe80::5054:ff:fe12:3456), "+
		"2 (roce_v1 10.0.2.15), 3 (roce_v2 10.0.2.15), 10 (roce_v2 10.0.2.16)")
	old := fakePort(t, map[string]string{"gids/0": "fe80:0000:0000:0000:5054:00ff:fe12:3456", "pkeys/0": "0xffff"})
	_, err = old.choose(gidChoice{kind: kindRoCEv2, index: -1}, netip.Addr{})
	require.EqualError(t, err, "the port has no GID of roce_v2, only 0 (ib fe80::5054:ff:fe12:3456)")
	_, err = port{}.choose(gidChoice{index: -1}, netip.Addr{})
	require.ErrorIs(t, err, errNoGID)

	at, err := p.pkeyIndex(0x0001)
	require.NoError(t, err)
	assert.Equal(t, 2, at, "full membership is no part of the key")
	_, err = p.pkeyIndex(0x1234)
	require.EqualError(t, err, "the port has no P_Key 0x1234, only 0xffff, 0x8001")

	n, err := checkMTU(0, 1024)
	require.NoError(t, err)
	assert.Equal(t, 1024, n)
	n, err = checkMTU(512, 1024)
	require.NoError(t, err)
	assert.Equal(t, 512, n)
	_, err = checkMTU(4096, 1024)
	require.EqualError(t, err, "MTU 4096, and the port's is 1024")
}

func TestAnMTUHasTheNumberThatVerbsGiveIt(t *testing.T) {
	for code, bytes := range map[int]int{1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096} {
		assert.Equal(t, code, mtuCode(bytes))
		assert.Equal(t, bytes, mtuOf(code))
	}
}

func TestThePathParametersAreParsed(t *testing.T) {
	p, err := parseParams(map[string]string{
		"gid": "roce_v1", "traffic_class": "106", "hop_limit": "1", "service_level": "3", "flow_label": "0xfffff",
		"pkey": "0x8001", "mtu": "1024", "retries": "7", "rnr_timer": "12", "rnr_retries": "0", "relaxed": "on", "keepalive": "2s",
	})
	require.NoError(t, err)
	assert.True(t, p.pathed)
	assert.True(t, p.relaxed)
	assert.Equal(t, gidChoice{kind: kindRoCEv1, index: -1}, p.gid)
	assert.Equal(t, []int{106, 1, 3, 0xfffff, 0x8001, 1024, 7, 12, 0},
		[]int{p.trafficClass, p.hopLimit, p.serviceLevel, p.flowLabel, p.pkey, p.mtu, p.retries, p.rnrTimer, p.rnrRetries})
	for k, v := range map[string]string{
		"gid": "256", "traffic_class": "256", "hop_limit": "-1", "service_level": "16", "flow_label": "0x100000",
		"pkey": "0", "mtu": "1000", "retries": "8", "rnr_timer": "32", "rnr_retries": "x", "relaxed": "1", "keepalive": "1ms",
	} {
		_, err := parseParams(map[string]string{k: v})
		require.ErrorContains(t, err, "parameter "+k, "%s=%s", k, v)
	}
	p, err = parseParams(nil)
	require.NoError(t, err)
	assert.False(t, p.pathed)
	assert.Equal(t, defaultHopLimit, p.hopLimit)
}
