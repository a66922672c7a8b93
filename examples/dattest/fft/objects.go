package fft

import (
	"context"
	"errors"
	"time"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

var hwconn = []testCase{
	{"Test if we can normally Open NIC and then close it", func(b *bench) error {
		ia, err := dat.Open(b.ctx, b.provider)
		if err != nil {
			return err
		}
		return ia.CloseGraceful()
	}},
	{"try to open NIC with incorrect device name", func(b *bench) error {
		var errs []error
		for _, name := range []string{"40", "x", "xsdf", "x34", "34df"} {
			_, err := dat.Open(b.ctx, name)
			errs = append(errs, returns("opening "+name, err, hw.ErrProviderNotFound))
		}
		return errors.Join(errs...)
	}},
	{"Try to close nic with Nic handle is null (NIC not open)", func(*bench) error {
		var ia *dat.IA
		return returns("closing none", ia.CloseGraceful(), hw.ErrInvalidHandle)
	}},
	{"Test if we can close NIC when the created endpoint has not been destroyed.", func(b *bench) error {
		o, err := b.open()
		if err != nil {
			return err
		}
		e, err := o.endpoint()
		if err != nil {
			return err
		}
		if err := o.ia.Close(); err != nil {
			return err
		}
		_, err = e.Query()
		return returns("a query of the endpoint", err, hw.ErrInvalidHandle)
	}},
}

var endpoint = []testCase{
	{"Test if we can normally create endpoint and destroy it.", func(b *bench) error {
		o, err := b.open()
		if err != nil {
			return err
		}
		e, err := o.endpoint()
		if err != nil {
			return err
		}
		return e.Close()
	}},
	{"try to create endpoint with pz already destroyed", func(b *bench) error {
		o, err := b.open()
		if err != nil {
			return err
		}
		if err := o.pz.Close(); err != nil {
			return err
		}
		_, err = o.endpoint()
		return returns("making an endpoint", err, hw.ErrInvalidHandle)
	}},
	{"try to destroy ep with descriptor still in working queue", func(b *bench) error {
		o, err := b.open()
		if err != nil {
			return err
		}
		e, err := o.endpoint()
		if err != nil {
			return err
		}
		m, err := o.pz.Alloc(bufferSize, hw.AllPrivileges)
		if err != nil {
			return err
		}
		if err := e.PostRecv(1, hw.Default, m.Segment(0, bufferSize)); err != nil {
			return err
		}
		if err := e.Close(); err != nil {
			return err
		}
		var one [1]event.Event
		n, err := o.d.Dequeue(one[:])
		if err != nil {
			return err
		}
		return is(n == 1 && one[0].Status == hw.StatusFlushed, "%d events, %v, where the flushed receive should be", n, one[0])
	}},
}

var pz = []testCase{
	{"Test if we can normally create pz and destroy it.", func(b *bench) error {
		o, err := b.open()
		if err != nil {
			return err
		}
		return o.pz.Close()
	}},
	{"try to destroy pz with vi still associated with it", func(b *bench) error {
		o, err := b.open()
		if err != nil {
			return err
		}
		if _, err := o.endpoint(); err != nil {
			return err
		}
		return returns("freeing the zone", o.pz.Close(), hw.ErrInvalidState)
	}},
	{"try to destroy pz with registered memory still associated with it", func(b *bench) error {
		o, err := b.open()
		if err != nil {
			return err
		}
		if _, err := o.pz.Alloc(bufferSize, hw.AllPrivileges); err != nil {
			return err
		}
		return returns("freeing the zone", o.pz.Close(), hw.ErrInvalidState)
	}},
}

const bufferSize = 1024

// registers registers and frees a region as often as times says.
func registers(times int) func(*bench) error {
	return func(b *bench) error {
		o, err := b.open()
		if err != nil {
			return err
		}
		buf := make([]byte, bufferSize)
		for range times {
			m, err := o.pz.Register(buf, hw.AllPrivileges)
			if err != nil {
				return err
			}
			if err := m.Free(); err != nil {
				return err
			}
		}
		return nil
	}
}

var memOf = []testCase{
	{"Test if we can register typical size of memory then deregister it.", registers(1)},
	{"Test if we can register typical size of memory deregister, then register it again.", registers(2)},
	{"Try to register memory with memory size 0", func(b *bench) error {
		o, err := b.open()
		if err != nil {
			return err
		}
		_, err = o.pz.Register(nil, hw.AllPrivileges)
		return returns("registering nothing", err, hw.ErrLength)
	}},
	{"Try to register memory with null pz", func(*bench) error {
		var pz *mem.PZ
		_, err := pz.Register(make([]byte, bufferSize), hw.AllPrivileges)
		return returns("registering in no zone", err, hw.ErrInvalidHandle)
	}},
	{"Try to deregister memory with null lmr_handle", func(*bench) error {
		var m *mem.LMR
		return returns("freeing none", m.Free(), hw.ErrInvalidHandle)
	}},
}

// waits waits as long as limit says for a connection request that does not come.
func waits(limit time.Duration) func(*bench) error {
	return func(b *bench) error {
		o, err := b.open()
		if err != nil {
			return err
		}
		if _, err := o.ia.NewPSP(ep.PSPConfig{Dispatcher: o.d}); err != nil {
			return err
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(b.ctx, limit)
		defer cancel()
		_, _, err = o.d.Wait(ctx, 1)
		took := time.Since(began)
		return errors.Join(returns("the wait", err, hw.ErrTimeout), is(took >= limit, "it took %v, not %v", took, limit))
	}
}

var connmgt = []testCase{
	{"Ensure time in dat_evd_wait works correctly", waits(10 * time.Millisecond)},
	{"Attempt to use timeout of 0 in dat_evd_wait", waits(0)},
}
