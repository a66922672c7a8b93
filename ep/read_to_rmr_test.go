package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

func TestAReadIntoAWindowGoesWhereItIsBoundTo(t *testing.T) {
	for _, scope := range []string{"zone", "endpoint"} {
		for _, zeroBased := range []bool{false, true} {
			r := newRig(t)
			a, _ := r.pair(nil)
			l := r.unshared()
			w, err := r.pz.NewRMR()
			if scope == "endpoint" {
				require.NoError(t, w.Free())
				w, err = a.NewRMR()
			}
			require.NoError(t, err)
			sink := r.bind(a, w, mem.Binding{Segment: l.Segment(8, 16), Privileges: hw.RemoteWrite, ZeroBased: zeroBased})
			copy(r.lmr.Bytes()[256:], "0123456789abcdef")
			require.NoError(t, a.PostRDMAReadToRMR(3, 0, sink, r.lmr.Remote(256, 10)))
			ev := r.next(r.dto)
			assert.Equal(t, event.DTOCompletion, ev.Number)
			assert.Equal(t, hw.Op(2), ev.Op, "RDMA_READ")
			assert.Equal(t, hw.StatusSuccess, ev.Status)
			assert.EqualValues(t, 10, ev.Length)
			assert.EqualValues(t, 3, ev.Cookie)
			assert.Equal(t, "\x000123456789\x00", string(l.Bytes()[7:19]))
			require.NoError(t, w.Free())
			require.NoError(t, l.Free())
		}
	}
}

func TestAReadIntoAWindowMustBeAllowed(t *testing.T) {
	for name, bind := range map[string]struct {
		priv  hw.Privileges
		shift uint64
		by    string
	}{
		"no remote write":    {hw.RemoteRead, 0, "self"},
		"beyond the window":  {hw.RemoteWrite, 9, "self"},
		"another endpoint's": {hw.RemoteWrite, 0, "peer"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			a, b := r.pair(nil)
			l, owner := r.unshared(), a
			if bind.by == "peer" {
				owner = b
			}
			w, err := owner.NewRMR()
			require.NoError(t, err)
			sink := r.bind(owner, w, mem.Binding{Segment: l.Segment(0, 16), Privileges: bind.priv})
			sink.Addr += bind.shift
			require.NoError(t, a.PostRDMAReadToRMR(3, 0, sink, r.lmr.Remote(256, 8)))
			assert.Equal(t, hw.StatusLocalProtection, r.next(r.dto).Status)
			r.broken(2)
			require.NoError(t, w.Free())
			require.NoError(t, l.Free())
		})
	}
}

func TestAReadIntoAWindowRefusesBadArguments(t *testing.T) {
	r := newRig(t)
	a, _ := r.pair(&Attr{MaxRDMASize: 64})
	local, remote := r.lmr.Remote(0, 64), r.lmr.Remote(64, 64)
	short, long := local, r.lmr.Remote(64, 65)
	short.Len--
	longer := local
	longer.Len++
	for name, c := range map[string]struct {
		err  error
		want error
	}{
		"nil":         {(*Endpoint)(nil).PostRDMAReadToRMR(1, 0, local, remote), hw.ErrInvalidHandle},
		"short":       {a.PostRDMAReadToRMR(1, 0, short, remote), hw.ErrLength},
		"long":        {a.PostRDMAReadToRMR(1, 0, longer, long), hw.ErrLength},
		"solicited":   {a.PostRDMAReadToRMR(1, hw.SolicitedWait, local, remote), hw.ErrInvalidParameter},
		"unsignalled": {a.PostRDMAReadToRMR(1, hw.Unsignalled, local, remote), hw.ErrInvalidParameter},
	} {
		assert.ErrorIs(t, c.err, c.want, name)
	}
	n, err := a.PostBatch([]DTO{{Op: hw.OpReadToRMR}})
	assert.Zero(t, n)
	assert.ErrorIs(t, err, hw.ErrInvalidParameter)
	r.none(r.dto)
	require.NoError(t, a.PostRDMAReadToRMR(1, 0, mem.RemoteSegment{}, mem.RemoteSegment{}), "nothing may be read anywhere")
	assert.Equal(t, hw.StatusSuccess, r.next(r.dto).Status)
}
