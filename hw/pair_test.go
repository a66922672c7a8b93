package hw_test

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"godat/hw"
)

var _ net.Addr = hw.PairAddr{}

// pingpong is a line that the C program ibv_rc_pingpong sent on soft-RoCE.
const pingpong = "0000:000011:f4ab0e:00000000000000000000ffff0a00020f"

func TestAPairAddrHasTheTextOfIbvRcPingpong(t *testing.T) {
	var a hw.PairAddr
	require.NoError(t, a.UnmarshalText([]byte(pingpong)))
	assert.Equal(t, hw.PairAddr{QPN: 0x11, PSN: 0xf4ab0e, GID: [16]byte{10: 0xff, 11: 0xff, 12: 10, 14: 2, 15: 15}}, a)
	assert.Equal(t, pingpong, a.String())
	a.LID, a.MTU = 0xabcd, 1024
	assert.Equal(t, "abcd"+pingpong[4:]+":1024", a.String())
	a.Farewell = 0x123456789
	assert.Equal(t, "abcd"+pingpong[4:]+":1024:000123456789", a.String())
	assert.Equal(t, "pair", a.Network())
}

func TestAPairAddrSurvivesItsTextForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := hw.PairAddr{
			QPN: rapid.Uint32Range(0, hw.MaxQPN).Draw(t, "QPN"),
			PSN: rapid.Uint32Range(0, hw.MaxPSN).Draw(t, "PSN"),
			LID: rapid.Uint16().Draw(t, "LID"),
			MTU: rapid.SampledFrom([]int{0, 256, 512, 1024, 2048, 4096}).Draw(t, "MTU"),
		}
		a.Farewell = rapid.Uint64Range(0, hw.MaxFarewell).Draw(t, "Farewell")
		copy(a.GID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "GID"))
		text, err := a.MarshalText()
		require.NoError(t, err)
		var b hw.PairAddr
		require.NoError(t, b.UnmarshalText(text))
		assert.Equal(t, a, b)
	})
}

func TestAPairAddrOutOfRangeHasNoText(t *testing.T) {
	for says, a := range map[string]hw.PairAddr{
		"queue pair number 0x1000000": {QPN: hw.MaxQPN + 1},
		"PSN 0x1000000":               {PSN: hw.MaxPSN + 1},
		"MTU 1000":                    {MTU: 1000},
		"MTU -1":                      {MTU: -1},
		"Farewell 0x1000000000000":    {Farewell: hw.MaxFarewell + 1},
	} {
		_, err := a.MarshalText()
		require.ErrorIs(t, err, hw.ErrInvalidParameter)
		assert.ErrorContains(t, err, says)
	}
}

func TestAPairAddrThatNoConnectedQueuePairHasIsRefusedByName(t *testing.T) {
	good := hw.PairAddr{QPN: 0x11, GID: netip.MustParseAddr("::ffff:10.0.2.15").As16()}
	require.NoError(t, good.Check("op"))
	infiniband := hw.PairAddr{QPN: 2, LID: 3}
	require.NoError(t, infiniband.Check("op"), "InfiniBand needs no GID")
	require.NoError(t, hw.PairAddr{QPN: hw.MaxQPN - 1, GID: netip.MustParseAddr("fe80::1").As16()}.Check("op"))
	for _, qpn := range []uint32{0, 1, hw.MaxQPN} {
		bad := good
		bad.QPN = qpn
		err := bad.Check("op")
		require.ErrorIs(t, err, hw.ErrInvalidParameter)
		assert.ErrorContains(t, err, fmt.Sprintf("queue pair number %#x", qpn))
	}
	for gid, says := range map[string]string{
		"::":               "neither a GID nor a LID",
		"ff0e::":           "GID ff0e:: is of a group",
		"::ffff:224.0.0.1": "GID 224.0.0.1 is of a group",
		"::ffff:127.0.0.1": "GID 127.0.0.1 is of this host alone",
		"::1":              "GID ::1 is of this host alone",
		"::ffff:0.0.0.0":   "GID 0.0.0.0 is no port's",
	} {
		bad := good
		bad.GID = netip.MustParseAddr(gid).As16()
		err := bad.Check("op")
		require.ErrorIs(t, err, hw.ErrInvalidParameter)
		assert.ErrorContains(t, err, says)
	}
}

func TestATextThatIsNoPairAddrIsRefusedByName(t *testing.T) {
	const gid = "00000000000000000000ffff0a00020f"
	for text, says := range map[string]string{
		"":                                    "1 fields",
		"0000:000011:f4ab0e":                  "3 fields",
		"0:0:0:0:0:0:0":                       "7 fields",
		"000:000011:f4ab0e:" + gid:            `the LID "000" is not of 4`,
		"0000:00011:f4ab0e:" + gid:            `the queue pair number "00011" is not of 6`,
		"0000:+00011:f4ab0e:" + gid:           `the queue pair number "+00011"`,
		"0000:00_011:f4ab0e:" + gid:           `the queue pair number "00_011"`,
		"0000:000011:f4ab0x:" + gid:           `the PSN "f4ab0x"`,
		pingpong[:len(pingpong)-1]:            "the GID",
		"0000:000011:f4ab0e:" + "z" + gid[1:]: "the GID",
		pingpong + ":":                        `the MTU ""`,
		pingpong + ":0":                       `the MTU "0"`,
		pingpong + ":1000":                    `the MTU "1000"`,
		pingpong + ":+256":                    `the MTU "+256"`,
		pingpong + ":256:":                    `the Farewell ""`,
		pingpong + ":256:000000000000":        `the Farewell "000000000000"`,
		pingpong + ":256:12345678901":         `the Farewell "12345678901"`,
		pingpong + ":4096:1234567890123":      "70 bytes",
	} {
		a := hw.PairAddr{QPN: 7}
		err := a.UnmarshalText([]byte(text))
		require.ErrorIs(t, err, hw.ErrInvalidParameter, "%q", text)
		assert.ErrorContains(t, err, says, "%q", text)
		assert.Equal(t, hw.PairAddr{QPN: 7}, a, "a text that is refused changes nothing")
	}
}

func FuzzPairAddr(f *testing.F) {
	f.Add([]byte(pingpong))
	f.Add([]byte(pingpong + ":4096"))
	f.Add([]byte(pingpong + ":0:123456789abc"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var a hw.PairAddr
		if a.UnmarshalText(text) != nil {
			return
		}
		again, err := a.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, string(bytes.ToLower(text)), string(again))
	})
}
