package runtime

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

// requireIA demands that an object is of an adapter.
func requireIA(t *testing.T, ia *IA, object any) {
	t.Helper()
	home, err := IAOf(object)
	require.NoError(t, err)
	require.Same(t, ia, home)
}

// oneOfEach makes an object of each kind, and a function that closes it, both at the
// index of DAT's number.
func oneOfEach(t *testing.T) (ia *IA, objects [12]any, closers [12]func() error) {
	ia, err := Open(context.Background(), "loop:handles")
	require.NoError(t, err)
	pz, err := ia.NewPZ()
	require.NoError(t, err)
	lmr, err := pz.Alloc(64, hw.AllPrivileges)
	require.NoError(t, err)
	rmr, err := pz.NewRMR()
	require.NoError(t, err)
	d, err := ia.NewDispatcher(channel(16))
	require.NoError(t, err)
	ec := ep.Config{PZ: pz, Recv: d, Request: d, Conn: d}
	active, err := ia.NewEndpoint(ec)
	require.NoError(t, err)
	reserved, err := ia.NewEndpoint(ec)
	require.NoError(t, err)
	psp, err := ia.NewPSP(ep.PSPConfig{Dispatcher: d})
	require.NoError(t, err)
	rsp, err := ia.NewRSP(ep.RSPConfig{Dispatcher: d, Endpoint: reserved})
	require.NoError(t, err)
	csp, err := ia.NewCSP(ep.CSPConfig{Dispatcher: d, Address: "handles:1"})
	require.NoError(t, err)
	cno, err := ia.NewCNO(evd.CNOConfig{})
	require.NoError(t, err)
	srq, err := ia.NewSRQ(pz, 1, 0)
	require.NoError(t, err)
	require.NoError(t, active.Connect(ep.ConnectConfig{Addr: "handles", Qual: psp.Qual()}))
	cr := ep.RequestOf(<-d.C())

	objects = [12]any{cr, reserved, d, ia, lmr, psp, pz, rmr, rsp, cno, srq, csp}
	closers = [12]func() error{
		func() error { return cr.Reject(nil) },
		func() error { return errors.Join(active.Close(), reserved.Close()) },
		d.Close, ia.CloseGraceful, lmr.Free, psp.Close, pz.Close, rmr.Free, rsp.Close, cno.Close, srq.Close, csp.Close,
	}
	t.Cleanup(func() { require.NoError(t, ia.Close()) })
	return ia, objects, closers
}

func TestObjectsOfEachKindHaveAConsumerContext(t *testing.T) {
	ia, objects, closers := oneOfEach(t)
	other := open(t, "loop:contexts")
	for number, object := range objects {
		requireIA(t, ia, object)
		context, err := ia.ConsumerContext(object)
		require.NoError(t, err)
		require.Nil(t, context)
		require.NoError(t, ia.SetConsumerContext(object, "first"))
		require.NoError(t, ia.SetConsumerContext(object, number))
		context, err = ia.ConsumerContext(object)
		require.NoError(t, err)
		require.Equal(t, number, context)

		requireForeign(t, other.SetConsumerContext(object, "theirs"))
		_, err = other.ConsumerContext(object)
		requireForeign(t, err)
	}
	require.NoError(t, ia.SetConsumerContext(objects[0], nil))
	context, err := ia.ConsumerContext(objects[0])
	require.NoError(t, err)
	require.Nil(t, context)

	for _, number := range [...]int{0, 5, 8, 11, 1, 10, 7, 4, 6, 2, 9, 3} { // children first
		require.NoError(t, closers[number](), number)
		_, err := IAOf(objects[number])
		require.ErrorIs(t, err, hw.ErrInvalidHandle, number)
		for _, of := range []*IA{ia, other} {
			_, err = of.ConsumerContext(objects[number])
			require.ErrorIs(t, err, hw.ErrInvalidHandle, number)
			require.ErrorIs(t, of.SetConsumerContext(objects[number], 1), hw.ErrInvalidHandle)
		}
	}
	for _, wrong := range []any{nil, 1, (*IA)(nil), (*ep.Endpoint)(nil), (*mem.LMR)(nil), event.Event{}} {
		_, err := IAOf(wrong)
		require.ErrorIs(t, err, hw.ErrInvalidHandle)
		_, err = other.ConsumerContext(wrong)
		require.ErrorIs(t, err, hw.ErrInvalidHandle)
	}
	require.NoError(t, other.Close())
	requireCode(t, other.SetConsumerContext(other, 1), hw.InvalidHandle, hw.HandleIA)
}

// requireForeign demands that a call refused an object of another adapter.
func requireForeign(t *testing.T, err error) {
	t.Helper()
	requireCode(t, err, hw.InvalidHandle, hw.Handle1)
	require.ErrorContains(t, err, "ConsumerContext")
	require.ErrorContains(t, err, "another adapter")
}

func TestContextsOfClosedObjectsAreForgotten(t *testing.T) {
	ia := open(t, "loop")
	for range 10 * minSweep {
		pz, err := ia.NewPZ()
		require.NoError(t, err)
		require.NoError(t, ia.SetConsumerContext(pz, pz))
		require.NoError(t, pz.Close())
	}
	assert.LessOrEqual(t, len(ia.lists.contexts.of), minSweep)
}
