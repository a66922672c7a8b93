//go:build linux && cgo

package ibv

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// InfiniBand's subnets need a LID alone; Ethernet knows GIDs alone. A GID that the program chose
// goes beyond the subnet.
func TestAPathHasAGIDWhereOneIsNeeded(t *testing.T) {
	peer := hw.PairAddr{QPN: 0x1234, PSN: 0x5678, LID: 9, GID: [16]byte{0xfe, 0x80, 15: 1}, MTU: 1024}
	noLID := peer
	noLID.LID = 0
	for name, c := range map[string]struct {
		ethernet bool
		index    int
		peer     hw.PairAddr
		global   bool
	}{
		"a LID of the subnet": {false, -1, peer, false},
		"a chosen GID":        {false, 3, peer, true},
		"no LID":              {false, -1, noLID, true},
		"Ethernet":            {true, -1, peer, true},
	} {
		own := ownPath{
			ethernet: c.ethernet, gid: gid{index: 3}, pkeyIndex: 2,
			values: hw.PairAddr{QPN: 0x11, PSN: 0x22, LID: 7, MTU: 4096},
		}
		p := params{port: 2, hopLimit: 5, trafficClass: 6, serviceLevel: 4, flowLabel: 8, gid: gidChoice{index: c.index}}
		path := own.to(&p, c.peer)
		assert.EqualValues(t, c.global, bool(path.global), name)
		assert.Equal(t, []any{c.peer.LID, uint32(0x1234), uint32(0x5678), uint32(0x22), uint8(4), uint8(2), uint16(2), uint8(mtuCode(1024))},
			[]any{uint16(path.dlid), uint32(path.qpn), uint32(path.rq_psn), uint32(path.sq_psn), uint8(path.sl), uint8(path.port), uint16(path.pkey_index), uint8(path.mtu)}, name)
		assert.Equal(t, []any{uint8(3), uint8(5), uint8(6), uint32(8), uint8(0xfe)},
			[]any{uint8(path.sgid_index), uint8(path.hop_limit), uint8(path.traffic_class), uint32(path.flow_label), uint8(path.dgid[0])}, name)
	}
}

func TestAPeerThatNoWayLeadsToIsRefusedInWords(t *testing.T) {
	of := func(text string) [16]byte { return netip.MustParseAddr(text).As16() }
	own := ownPath{ethernet: true, gid: gid{index: 3, addr: of("::ffff:10.0.2.15")}}
	require.NoError(t, own.reaches("op", hw.PairAddr{QPN: 2, GID: of("::ffff:10.0.2.16")}))
	for _, peer := range []hw.PairAddr{{QPN: 2, LID: 9}, {QPN: 2, GID: of("fe80::1")}} {
		require.ErrorIs(t, own.reaches("op", peer), hw.ErrInvalidParameter)
	}
	require.ErrorContains(t, own.reaches("op", hw.PairAddr{QPN: 2, LID: 9}), "gave no GID, which Ethernet needs: one like 10.0.2.15")
	require.ErrorContains(t, own.reaches("op", hw.PairAddr{QPN: 2, GID: of("fe80::1")}), "fe80::1 and 10.0.2.15 here are not of the same IP version")
	own.ethernet = false
	require.NoError(t, own.reaches("op", hw.PairAddr{QPN: 2, LID: 9}), "InfiniBand needs no GID")
}
