package ep

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/mem"
)

// flagTable is DAT's table of the completion flags that posts may have: y legal,
// - INVALID_PARAMETER, attr legal if the endpoint's attribute of the direction has
// it. It is typed from the specification, flags by their numbers.
const flagTable = `
                0x01  0x02  0x04  0x08  0x10  0x20
post_recv       -     -     attr  -     -     -
post_send       y     y     attr  y     -     -
post_send_inv   y     y     attr  y     -     -
post_rdma_read  y     -     attr  y     -     -
read_to_rmr     y     -     attr  y     -     -
post_rdma_write y     -     attr  y     -     -
write_immed     y     y     attr  y     -     -
cmp_swap        y     -     attr  y     -     -
fetch_add       y     -     attr  y     -     -
rmr_bind        y     -     attr  y     -     -
rmr_unbind      y     -     attr  y     -     -
`

// postFlagged posts one operation, with arguments that are all in order.
func (r *rig) postFlagged(e *Endpoint, op string, f hw.Flags) error {
	seg, remote := r.lmr.Segment(0, 8), r.lmr.Remote(64, 8)
	var err error
	switch op {
	case "post_recv":
		return e.PostRecv(1, f, seg)
	case "post_send":
		return e.PostSend(1, f, seg)
	case "post_send_inv":
		return e.PostSendInvalidate(1, f, 0, seg)
	case "post_rdma_read":
		return e.PostRDMARead(1, f, remote, seg)
	case "read_to_rmr":
		return e.PostRDMAReadToRMR(1, f, remote, remote)
	case "post_rdma_write":
		return e.PostRDMAWrite(1, f, remote, seg)
	case "write_immed":
		return e.PostRDMAWriteImmediate(1, f, 1, remote, seg)
	case "cmp_swap":
		return e.PostCompareSwap(1, f, 0, 0, remote, seg)
	case "fetch_add":
		return e.PostFetchAdd(1, f, 0, remote, seg)
	case "rmr_bind":
		_, err = e.PostBind(1, f, r.rmr(), mem.Binding{Segment: seg, Privileges: hw.RemoteRead})
	case "rmr_unbind":
		_, err = e.PostBind(1, f, r.rmr(), mem.Binding{})
	default:
		err = fmt.Errorf("no such operation: %s", op)
	}
	return err
}

func TestEveryFlagOfEveryOperation(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(flagTable), "\n")
	flags := strings.Fields(lines[0])
	require.Len(t, flags, 6)
	require.Len(t, lines[1:], 11)
	for _, attr := range []hw.Flags{0, 0x04} {
		r := newRig(t)
		d := r.dispatcher(evd.ModeQueue, 1024)
		e := r.endpointOf(Config{PZ: r.pz, Recv: d, Request: d, Conn: r.conn, Attr: &Attr{
			RecvFlags: attr, RequestFlags: attr, MaxRecvDTOs: 256, MaxRequestDTOs: 256,
		}})
		r.connect(r.endpoint(nil), e)
		for _, line := range lines[1:] {
			cells := strings.Fields(line)
			require.Len(t, cells, 1+len(flags))
			for i, name := range flags {
				var f hw.Flags
				_, err := fmt.Sscanf(name, "0x%x", &f)
				require.NoError(t, err)
				legal := cells[1+i] == "y" || cells[1+i] == "attr" && attr != 0
				what := fmt.Sprintf("%s with %s, attribute %#x", cells[0], name, int(attr))
				before, err := e.Status()
				require.NoError(t, err)
				err = r.postFlagged(e, cells[0], f)
				if legal {
					assert.NoError(t, err, what)
					continue
				}
				assert.ErrorIs(t, err, &hw.Error{Type: hw.InvalidParameter}, what)
				after, err := e.Status()
				require.NoError(t, err)
				assert.Equal(t, before, after, what)
			}
			if cells[0] != "post_recv" {
				assert.NoError(t, r.postFlagged(e, cells[0], 0x01|0x08), "%s with two legal flags", cells[0])
			}
			assert.Error(t, r.postFlagged(e, cells[0], 0x01|0x10), "%s with a legal flag and another", cells[0])
		}
		require.NoError(t, e.Close())
		require.NoError(t, d.Close())
	}
}

// privilegeTable is what each operation needs of the memory it touches, here and
// at the peer: DAT's privileges by their numbers, typed from the specification.
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
	case side == "here" && op != "read_to_rmr": // whose sink is named by a remote context
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

// completionOf is the next completion with that cookie.
func (r *rig) completionOf(cookie uint64) evd.Event {
	for {
		if ev := r.next(r.dto); ev.Cookie == cookie {
			return ev
		}
	}
}
