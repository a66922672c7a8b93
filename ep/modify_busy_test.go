package ep

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
)

// busyQP is a queue pair that the device can't close at first.
type busyQP struct {
	hw.QP
	refusals int
}

var errBusy = errors.New("the device is busy")

func (q *busyQP) Close() error {
	if q.refusals > 0 {
		q.refusals--
		return errBusy
	}
	return q.QP.Close()
}

// The endpoint has its new queue pair by then.
func TestModifySucceedsThoughTheDeviceCantCloseTheOldQueuePairYet(t *testing.T) {
	r := newRig(t)
	pz, err := r.domain.NewPZ()
	require.NoError(t, err)
	e := r.endpointOf(Config{PZ: pz, Recv: r.dto, Request: r.dto, Conn: r.conn})
	e.box.SetQP(&busyQP{e.box.QP(), 2})
	require.NoError(t, e.Modify(Param{PZ: r.pz}, "PZ"))
	p, err := e.Query()
	require.NoError(t, err)
	assert.Same(t, r.pz, p.PZ)
	requireWorks(t, r, r.accept(e), e)
	require.ErrorIs(t, pz.Close(), hw.ErrInvalidState, "the old queue pair is in it")
	require.ErrorIs(t, e.Close(), errBusy)
	require.ErrorIs(t, pz.Close(), hw.ErrInvalidState)
	require.NoError(t, e.Close(), "the next close tries again")
	require.NoError(t, pz.Close())
}

// busyDevice is a device whose next queue pair is a busyQP.
type busyDevice struct {
	hw.Device
	refusals int
}

func (d *busyDevice) NewQP(cfg hw.QPConfig) (hw.QP, error) {
	qp, err := d.Device.NewQP(cfg)
	if err != nil || d.refusals == 0 {
		return qp, err
	}
	busy := &busyQP{qp, d.refusals}
	d.refusals = 0
	return busy, nil
}

func TestTheQueuePairOfAModifyThatFailsIsClosedLaterIfTheDeviceCantNow(t *testing.T) {
	dev := &busyDevice{Device: loopDevice(t)}
	r := newRigOn(t, dev)
	e := r.endpoint(nil)
	require.NoError(t, e.PostRecv(1, 0, r.lmr.Segment(0, 8)))
	pz, err := r.domain.NewPZ()
	require.NoError(t, err)
	other := r.dispatcher(evd.ModeQueue, 64)
	dev.refusals = 2
	spoiled := Param{PZ: pz, Request: other, Attr: Attr{RecvFlags: hw.SolicitedWait}}
	err = e.Modify(spoiled, "PZ", "Request", "RecvFlags")
	require.ErrorIs(t, err, hw.ErrInvalidState, "receives are posted")
	require.ErrorIs(t, pz.Close(), hw.ErrInvalidState, "the new queue pair is in it")
	require.ErrorIs(t, e.Close(), errBusy)
	require.ErrorIs(t, pz.Close(), hw.ErrInvalidState)
	require.NoError(t, e.Close(), "the next close tries again")
	require.NoError(t, pz.Close())
	require.NoError(t, other.Close(), "nothing feeds it")
	assert.Equal(t, uint64(1), r.next(r.dto).Cookie, "flushed")
}
