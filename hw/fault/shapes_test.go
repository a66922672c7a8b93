package fault

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// shape is a device that does nothing; the types that embed it differ in their optional
// interfaces.
type shape struct {
	hw.Device
	qps []hw.QPConfig
	srq *shapeSRQ
}

func (*shape) Attr() hw.Attr { return hw.Attr{Ops: hw.Ops(hw.OpSend)} }
func (*shape) Close() error  { return nil }

func (s *shape) NewQP(cfg hw.QPConfig) (hw.QP, error) {
	s.qps = append(s.qps, cfg)
	return &shapeQP{}, nil
}

type shapeQP struct{ hw.QP }

func (*shapeQP) Close() error { return nil }

func (*shapeQP) PostSend(wrs []hw.SendWR) (int, error) { return len(wrs), nil }

func (*shapeQP) Break(bool) {}

func (*shapeQP) PostRecv(wrs []hw.RecvWR) (int, error) { return len(wrs), nil }

// shapePolled, shapeShared and shapeBinder are the optional interfaces.
type shapePolled struct{ wcs *[]hw.WC }

type shapeCQ struct {
	hw.CQ
	cfg hw.CQConfig
}

func (*shapeCQ) Close() error { return nil }

func (shapePolled) NewCQ(cfg hw.CQConfig) (hw.CQ, error) { return &shapeCQ{cfg: cfg}, nil }
func (shapePolled) Arm() error                           { return nil }
func (shapePolled) Wait() error                          { return nil }
func (shapePolled) Wake()                                {}

func (p shapePolled) Poll(wcs []hw.WC) int {
	n := copy(wcs, *p.wcs)
	*p.wcs = (*p.wcs)[n:]
	return n
}

type shapeShared struct{ s *shape }

type shapeSRQ struct {
	hw.SRQ
	posted []hw.RecvWR
}

func (s *shapeSRQ) PostRecv(wrs []hw.RecvWR) (int, error) {
	s.posted = append(s.posted, wrs...)
	return len(wrs), nil
}
func (*shapeSRQ) Close() error { return nil }

func (p shapeShared) NewSRQ(hw.SRQConfig) (hw.SRQ, error) {
	p.s.srq = &shapeSRQ{}
	return p.s.srq, nil
}

type shapeBinder struct{ with *hw.QP }

func (b shapeBinder) NewWindow(_ hw.Zone, qp hw.QP) (hw.Window, error) {
	*b.with = qp
	return nil, nil
}

// shapeProvider opens a given device.
type shapeProvider struct {
	dev   hw.Device
	async func(hw.AsyncEvent)
}

func (*shapeProvider) Name() string { return "shape" }

func (p *shapeProvider) Open(cfg hw.OpenConfig) (hw.Device, error) {
	p.async = cfg.Async
	return p.dev, nil
}

func TestFaultHasTheOptionalInterfacesOfItsInnerDevice(t *testing.T) {
	for set := range 8 {
		s := &shape{}
		var wcs []hw.WC
		var with hw.QP
		polled, shared, binder := shapePolled{&wcs}, shapeShared{s}, shapeBinder{&with}
		inner := [8]hw.Device{
			s,
			struct {
				hw.Device
				shapePolled
			}{s, polled},
			struct {
				hw.Device
				shapeShared
			}{s, shared},
			struct {
				hw.Device
				shapePolled
				shapeShared
			}{s, polled, shared},
			struct {
				hw.Device
				shapeBinder
			}{s, binder},
			struct {
				hw.Device
				shapePolled
				shapeBinder
			}{s, polled, binder},
			struct {
				hw.Device
				shapeShared
				shapeBinder
			}{s, shared, binder},
			struct {
				hw.Device
				shapePolled
				shapeShared
				shapeBinder
			}{s, polled, shared, binder},
		}[set]
		t.Run(fmt.Sprintf("set %03b", set), func(t *testing.T) {
			dev, err := Wrap(&shapeProvider{dev: inner}, Config{}).Open(hw.OpenConfig{})
			require.NoError(t, err)
			_, isPolled := dev.(hw.Polled)
			_, isShared := dev.(hw.SharedReceiver)
			b, isBinder := dev.(hw.Binder)
			assert.Equal(t, set&1 != 0, isPolled)
			assert.Equal(t, set&2 != 0, isShared)
			assert.Equal(t, set&4 != 0, isBinder)
			assert.Equal(t, inner, dev.(interface{ Unwrap() hw.Device }).Unwrap())
			if isBinder {
				qp, err := dev.NewQP(hw.QPConfig{})
				require.NoError(t, err)
				_, err = b.NewWindow(nil, qp)
				require.NoError(t, err)
				assert.IsType(t, &shapeQP{}, with, "the inner device sees its own queue pair")
			}
			assert.NoError(t, dev.Close())
		})
	}
}

func TestFaultHandsOnSharedReceivesWithTheirIDs(t *testing.T) {
	s := &shape{}
	var wcs []hw.WC
	dev, err := Wrap(&shapeProvider{dev: struct {
		hw.Device
		shapePolled
		shapeShared
	}{s, shapePolled{&wcs}, shapeShared{s}}}, Config{}).Open(hw.OpenConfig{})
	require.NoError(t, err)
	srq, err := dev.(hw.SharedReceiver).NewSRQ(hw.SRQConfig{})
	require.NoError(t, err)
	cq, err := dev.(hw.Polled).NewCQ(hw.CQConfig{Depth: 8, Tag: 5})
	require.NoError(t, err)
	for number := range uint32(2) {
		_, err := dev.NewQP(hw.QPConfig{SRQ: srq, SendCQ: cq, RecvCQ: cq, Number: 100 + number})
		require.NoError(t, err)
	}
	n, err := srq.PostRecv([]hw.RecvWR{{ID: 7}, {ID: ^uint64(0)}, {ID: 9}})
	require.NoError(t, err)
	require.Equal(t, 3, n)
	assert.IsType(t, &shapeSRQ{}, s.qps[0].SRQ, "the inner device sees its own queue")
	// Both queue pairs take receives, which complete out of order.
	for i, p := range []int{2, 0, 1} {
		wcs = append(wcs, hw.WC{ID: s.srq.posted[p].ID, Op: hw.OpRecv, QP: s.qps[i%2].Number, CQ: 5})
	}
	var got [8]hw.WC
	polled := 0
	for k := 1; k > 0; polled += k {
		k = dev.(hw.Polled).Poll(got[polled:])
	}
	require.Equal(t, 3, polled)
	for i, want := range []hw.WC{{ID: 9, QP: 100}, {ID: 7, QP: 101}, {ID: ^uint64(0), QP: 100}} {
		assert.Equal(t, want.ID, got[i].ID)
		assert.Equal(t, want.QP, got[i].QP)
		assert.Equal(t, uint32(5), got[i].CQ)
	}
	require.NoError(t, srq.Close())
	require.NoError(t, dev.Close())
}

func TestFaultPollsAgainWhenItDroppedAWholeBatch(t *testing.T) {
	s := &shape{}
	var wcs []hw.WC
	f := Wrap(&shapeProvider{dev: struct {
		hw.Device
		shapePolled
	}{s, shapePolled{&wcs}}}, Config{On: Triggers{DropCompletion: {Nth: 1}}})
	dev, err := f.Open(hw.OpenConfig{})
	require.NoError(t, err)
	cq, err := dev.(hw.Polled).NewCQ(hw.CQConfig{Depth: 8})
	require.NoError(t, err)
	qp, err := dev.NewQP(hw.QPConfig{SendCQ: cq, RecvCQ: cq})
	require.NoError(t, err)
	_, err = qp.PostRecv([]hw.RecvWR{{ID: 1}, {ID: 2}})
	require.NoError(t, err)
	for number := range uint32(2) {
		wcs = append(wcs, hw.WC{ID: makeID(idRecv, 0, number)})
	}
	var one [1]hw.WC
	require.Equal(t, 1, dev.(hw.Polled).Poll(one[:]), "a poller that is told of nothing goes to sleep")
	assert.Equal(t, uint64(2), one[0].ID)
	require.NoError(t, dev.Close())
}

func TestFaultNamesItsOwnObjectsInAsyncEvents(t *testing.T) {
	s := &shape{}
	var wcs []hw.WC
	p := &shapeProvider{dev: struct {
		hw.Device
		shapePolled
		shapeShared
	}{s, shapePolled{&wcs}, shapeShared{s}}}
	var got hw.AsyncEvent
	dev, err := Wrap(p, Config{}).Open(hw.OpenConfig{Async: func(ev hw.AsyncEvent) { got = ev }})
	require.NoError(t, err)
	qp, err := dev.NewQP(hw.QPConfig{})
	require.NoError(t, err)
	cq, err := dev.(hw.Polled).NewCQ(hw.CQConfig{})
	require.NoError(t, err)
	srq, err := dev.(hw.SharedReceiver).NewSRQ(hw.SRQConfig{})
	require.NoError(t, err)
	p.async(hw.AsyncEvent{
		Kind: hw.AsyncQPError, QP: qp.(*queuePair).inner, CQ: cq.(*completionQueue).CQ, SRQ: wrapped(srq).SRQ,
	})
	assert.Same(t, qp, got.QP)
	assert.Same(t, cq, got.CQ)
	assert.Same(t, srq, got.SRQ)
	require.NoError(t, cq.Close())
	require.NoError(t, qp.Close())
	require.NoError(t, dev.Close())
}

// ends is an owner that records the reasons of Down.
type ends struct {
	hw.Facts
	why []hw.Reason
}

func (*ends) Established(hw.ConnInfo)           {}
func (e *ends) Down(why hw.Reason, _ *hw.Cause) { e.why = append(e.why, why) }

func TestFaultCallsDownOnce(t *testing.T) {
	s := &shape{}
	dev, err := Wrap(&shapeProvider{dev: s}, Config{On: Triggers{BreakConn: {Nth: 1}}}).Open(hw.OpenConfig{})
	require.NoError(t, err)
	got := &ends{}
	qp, err := dev.NewQP(hw.QPConfig{Facts: got})
	require.NoError(t, err)
	s.qps[0].Facts.Established(hw.ConnInfo{})
	_, err = qp.PostSend(make([]hw.SendWR, 1))
	require.NoError(t, err)
	require.Equal(t, []hw.Reason{hw.ReasonBroken}, got.why)
	s.qps[0].Facts.Down(hw.ReasonPeer, nil)
	assert.Len(t, got.why, 1, "the inner device noticed too")
	require.NoError(t, dev.Close())
}
