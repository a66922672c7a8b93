package runtime

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/hw/sim"
)

var errBusy = errors.New("the device is busy")

// busy wraps a provider. The first close of an object of one kind, or of the device
// itself, fails.
type busy struct {
	hw.Provider
	kind string

	mu      sync.Mutex
	refused int
}

// close closes an object of a kind, unless it is the first close of that kind.
func (b *busy) close(kind string, closeIt func() error) error {
	b.mu.Lock()
	refuse := kind == b.kind && b.refused == 0
	if refuse {
		b.refused++
	}
	b.mu.Unlock()
	if refuse {
		return errBusy
	}
	return closeIt()
}

func (b *busy) Open(cfg hw.OpenConfig) (hw.Device, error) {
	dev, err := b.Provider.Open(cfg)
	if err != nil {
		return nil, err
	}
	d := &busyDevice{dev, b}
	if p, ok := dev.(hw.Polled); ok {
		return &busyPolled{d, p}, nil
	}
	return d, nil
}

type busyDevice struct {
	hw.Device
	b *busy
}

func (d *busyDevice) Close() error { return d.b.close("device", d.Device.Close) }

func (d *busyDevice) NewZone() (hw.Zone, error) {
	z, err := d.Device.NewZone()
	return &busyZone{z, d.b}, err
}

func (d *busyDevice) NewQP(cfg hw.QPConfig) (hw.QP, error) {
	cfg.Zone = cfg.Zone.(*busyZone).Zone
	q, err := d.Device.NewQP(cfg)
	return &busyQP{q, d.b}, err
}

func (d *busyDevice) Register(zone hw.Zone, mem []byte, priv hw.Privileges) (hw.MR, error) {
	m, err := d.Device.Register(zone.(*busyZone).Zone, mem, priv)
	return &busyMR{m, d.b}, err
}

func (d *busyDevice) Listen(cfg hw.ListenConfig) (hw.Listener, error) {
	l, err := d.Device.Listen(cfg)
	return &busyListener{l, d.b}, err
}

// busyPolled is a device whose completions are polled.
type busyPolled struct {
	*busyDevice
	hw.Polled
}

func (d *busyPolled) Attr() hw.Attr { return d.busyDevice.Attr() }

type (
	busyZone struct {
		hw.Zone
		b *busy
	}
	busyQP struct {
		hw.QP
		b *busy
	}
	busyMR struct {
		hw.MR
		b *busy
	}
	busyListener struct {
		hw.Listener
		b *busy
	}
)

func (z *busyZone) Close() error     { return z.b.close("zone", z.Zone.Close) }
func (q *busyQP) Close() error       { return q.b.close("queue pair", q.QP.Close) }
func (m *busyMR) Deregister() error  { return m.b.close("region", m.MR.Deregister) }
func (l *busyListener) Close() error { return l.b.close("listener", l.Listener.Close) }

func TestACloseThatFailedSucceedsWhenItIsTriedAgain(t *testing.T) {
	loop, ok := hw.Lookup("loop")
	require.True(t, ok)
	providers := map[string]func() hw.Provider{
		"loop": func() hw.Provider { return loop },
		"sim":  func() hw.Provider { return sim.New(sim.Config{}) },
	}
	for name, provider := range providers {
		for _, kind := range []string{"listener", "queue pair", "region", "zone", "device"} {
			t.Run(name+" with a busy "+kind, func(t *testing.T) {
				p := provider()
				b := &busy{Provider: p, kind: kind}
				ia, err := Open(context.Background(), p.Name(), WithProvider(b))
				require.NoError(t, err)
				pz, err := ia.NewPZ()
				require.NoError(t, err)
				lmr, err := pz.Alloc(64, hw.AllPrivileges)
				require.NoError(t, err)
				d, err := ia.NewDispatcher(channel(8))
				require.NoError(t, err)
				e, err := ia.NewEndpoint(ep.Config{PZ: pz, Recv: d, Request: d, Conn: d})
				require.NoError(t, err)
				psp, err := ia.NewPSP(ep.PSPConfig{Dispatcher: d})
				require.NoError(t, err)

				require.ErrorIs(t, ia.Close(), errBusy)
				_, err = ia.NewPZ()
				requireCode(t, err, hw.InvalidHandle, hw.HandleIA)
				require.NoError(t, ia.Close())
				for _, closeAgain := range []func() error{ia.Close, psp.Close, e.Close, d.Close, lmr.Free, pz.Close} {
					assert.NoError(t, closeAgain())
				}
				requireCode(t, ia.CloseGraceful(), hw.InvalidHandle, hw.HandleIA)
			})
		}
	}
}

// A callback may wait for an object that the adapter's close ends after the callback's
// own dispatcher.
func TestCloseWakesCallbacksThatWaitForOtherObjects(t *testing.T) {
	for range 20 { // Close takes dispatchers in any order
		ia := open(t, "loop")
		queue, err := ia.NewDispatcher(evd.Config{QLen: 1})
		require.NoError(t, err)
		cno, err := ia.NewCNO(evd.CNOConfig{})
		require.NoError(t, err)
		begun, ended := make(chan struct{}, 2), make(chan error, 2)
		callBack(t, ia, func([]event.Event) {
			begun <- struct{}{}
			_, _, err := queue.Wait(context.Background(), 1)
			ended <- err
		})
		callBack(t, ia, func([]event.Event) {
			begun <- struct{}{}
			_, err := cno.Wait(context.Background())
			ended <- err
		})
		<-begun
		<-begun
		require.NoError(t, ia.Close())
		assert.Error(t, <-ended)
		assert.Error(t, <-ended)
	}
}
