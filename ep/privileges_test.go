package ep

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

// privilegeTable is the privilege that each operation needs of the memory it
// touches, here and at the peer: DAT's privileges by their numbers, typed from the
// specification.
const privilegeTable = `
                here  peer
post_recv       0x10  -
post_send       0x01  -
post_send_inv   0x01  -
post_rdma_read  0x10  0x02
read_to_rmr     0x20  0x02
post_rdma_write 0x01  0x20
write_immed     0x01  0x20
fetch_add       0x10  0x40
cmp_swap        0x10  0x40
`

func TestEveryPrivilegeOfEveryOperationOnEitherSide(t *testing.T) {
	all := hw.Privileges(0x73)
	for _, line := range strings.Split(strings.TrimSpace(privilegeTable), "\n")[1:] {
		cells := strings.Fields(line)
		for side, name := range []string{"here", "peer"} {
			if cells[1+side] == "-" {
				continue
			}
			var need hw.Privileges
			_, err := fmt.Sscanf(cells[1+side], "0x%x", &need)
			require.NoError(t, err)
			for _, p := range []hw.Privileges{0, 0x01, 0x02, 0x10, 0x20, 0x40, 0x73, all &^ need} {
				local, peer := all, p
				if name == "here" {
					local, peer = p, all
				}
				t.Run(fmt.Sprintf("%s with %#x %s", cells[0], int(p), name), func(t *testing.T) {
					checkPrivileges(t, cells[0], name, local, peer, p&need == need)
				})
			}
		}
	}
}

func checkPrivileges(t *testing.T, op, side string, local, peer hw.Privileges, allowed bool) {
	r := newRig(t)
	a, b := r.pair(nil)
	here, err := r.pz.Alloc(64, local)
	require.NoError(t, err)
	there, err := r.pz.Alloc(64, peer)
	require.NoError(t, err)
	if op != "post_recv" {
		require.NoError(t, b.PostRecv(99, 0, r.lmr.Segment(0, 64)))
	}
	seg := here.Segment(0, 8)
	remote := mem.RemoteSegment{Addr: there.Segment(0, 8).Addr, Len: 8, Context: there.RemoteContext()}
	switch op {
	case "post_recv":
		err = a.PostRecv(1, 0, seg)
	case "post_send":
		err = a.PostSend(1, 0, seg)
	case "post_send_inv":
		err = a.PostSendInvalidate(1, 0, r.lmr.RemoteContext(), seg)
	case "post_rdma_read":
		err = a.PostRDMARead(1, 0, remote, seg)
	case "read_to_rmr":
		sink := mem.RemoteSegment{Addr: seg.Addr, Len: 8, Context: here.RemoteContext()}
		err = a.PostRDMAReadToRMR(1, 0, sink, remote)
	case "post_rdma_write":
		err = a.PostRDMAWrite(1, 0, remote, seg)
	case "write_immed":
		err = a.PostRDMAWriteImmediate(1, 0, 1, remote, seg)
	case "fetch_add":
		err = a.PostFetchAdd(1, 0, 1, remote, seg)
	case "cmp_swap":
		err = a.PostCompareSwap(1, 0, 1, 1, remote, seg)
	}
	switch {
	case allowed && op == "post_recv":
		require.NoError(t, err)
		require.NoError(t, b.PostSend(2, hw.Suppress, r.lmr.Segment(0, 8)))
		assert.Equal(t, hw.StatusSuccess, r.completionOf(1).Status)
	case allowed:
		require.NoError(t, err)
		assert.Equal(t, hw.StatusSuccess, r.completionOf(1).Status)
	case side == "here" && op != "read_to_rmr": // a read_to_rmr names its sink by a remote context
		assert.ErrorIs(t, err, hw.ErrPrivileges)
		status, err := a.Status()
		require.NoError(t, err)
		assert.Equal(t, Status{State: Connected, RecvIdle: true, RequestIdle: true}, status, "no effect")
	default:
		require.NoError(t, err)
		want := hw.StatusRemoteAccess
		if side == "here" {
			want = hw.StatusLocalProtection
		}
		assert.Equal(t, want, r.completionOf(1).Status)
		r.broken(2)
	}
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	require.NoError(t, here.Free())
	require.NoError(t, there.Free())
}

// completionOf returns the next completion with that cookie.
func (r *rig) completionOf(cookie uint64) event.Event {
	for {
		if ev := r.next(r.dto); ev.Cookie == cookie {
			return ev
		}
	}
}
