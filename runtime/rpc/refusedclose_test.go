package rpc

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/loop"
	dat "godat/runtime"
)

// busy opens loop devices that refuse to close a queue pair while it is set.
type busy struct{ atomic.Bool }

var errBusy = errors.New("the device is busy")

func (*busy) Name() string { return "busy" }

func (b *busy) Open(cfg hw.OpenConfig) (hw.Device, error) {
	dev, err := loop.New().Open(cfg)
	return &busyDevice{dev, b}, err
}

type (
	busyDevice struct {
		hw.Device
		b *busy
	}
	busyQP struct {
		hw.QP
		b *busy
	}
	busyRequest struct{ hw.Request }
)

func (d *busyDevice) NewQP(cfg hw.QPConfig) (hw.QP, error) {
	q, err := d.Device.NewQP(cfg)
	return &busyQP{q, d.b}, err
}

func (d *busyDevice) Listen(cfg hw.ListenConfig) (hw.Listener, error) {
	hand := cfg.OnRequest
	cfg.OnRequest = func(r hw.Request) bool { return hand(busyRequest{r}) }
	return d.Device.Listen(cfg)
}

func (q *busyQP) Close() error {
	if q.b.Load() {
		return errBusy
	}
	return q.QP.Close()
}

func (r busyRequest) Accept(qp hw.QP, private []byte) error {
	return r.Request.Accept(qp.(*busyQP).QP, private)
}

func TestACloseThatTheDeviceRefusesSaysSoAndMayBeCalledAgain(t *testing.T) {
	for _, end := range []string{"client", "server"} {
		t.Run(end, func(t *testing.T) {
			b := new(busy)
			ia, err := dat.Open(context.Background(), "busy", dat.WithProvider(b))
			require.NoError(t, err)
			s, err := Listen(context.Background(), ia, "", Config{})
			require.NoError(t, err)
			c, err := Dial(context.Background(), ia, s.Addr(), Config{})
			require.NoError(t, err)
			first, last := c.Close, s.Close
			if end == "server" {
				first, last = last, first
			}
			b.Store(true)
			closed := make(chan error, 1)
			go func() { closed <- first() }()
			select {
			case err := <-closed:
				require.ErrorIs(t, err, errBusy)
			case <-time.After(10 * time.Second):
				assert.Fail(t, "the close waits for what the device refused")
				go func() { _ = ia.Close() }()
				require.Error(t, <-closed)
			}
			b.Store(false)
			require.NoError(t, first())
			require.NoError(t, last())
			require.NoError(t, ia.CloseGraceful())
		})
	}
}
