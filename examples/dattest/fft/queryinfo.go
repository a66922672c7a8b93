package fft

import (
	"errors"
	"fmt"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	dat "godat/runtime"
)

// query is a case that needs the adapter and the objects on it.
func query(run func(objects) error) func(*bench) error {
	return func(b *bench) error {
		o, err := b.open()
		if err != nil {
			return err
		}
		return run(o)
	}
}

func description(call string) string {
	return fmt.Sprintf("Verify %s Querying information is successful using DAT_%[1]s_QUERY.", call)
}

func refusal(call, code, why string) string {
	return fmt.Sprintf("Verify %s Querying fails with DAT_%s when passing %s to DAT_%[1]s_QUERY", call, code, why)
}

const (
	badMask = "a bad parameter"
	badIt   = "an invalid handle"
)

var queryinfo = []testCase{
	{description("IA"), query(func(o objects) error {
		attr := o.ia.Attr()
		return is(o.ia.Async() != nil && attr.MaxQPs > 0 && attr.Provider != "", "not all is said: %+v", attr)
	})},
	{description("CNO"), query(func(o objects) error {
		c, err := o.ia.NewCNO(evd.CNOConfig{})
		if err != nil {
			return err
		}
		_, err = c.Query()
		return err
	})},
	{description("EVD"), query(func(o objects) error {
		p, err := o.d.Query()
		if err != nil {
			return err
		}
		return is(p.QLen >= 64, "a length of %d", p.QLen)
	})},
	{description("PSP"), query(func(o objects) error {
		psp, err := o.ia.NewPSP(ep.PSPConfig{Dispatcher: o.d})
		if err != nil {
			return err
		}
		p, err := psp.Query()
		if err != nil {
			return err
		}
		return is(p.Qual == psp.Qual() && p.Dispatcher == o.d, "it says %+v", p)
	})},
	{description("RSP"), query(func(o objects) error {
		e, err := o.endpoint()
		if err != nil {
			return err
		}
		rsp, err := o.ia.NewRSP(ep.RSPConfig{Endpoint: e, Dispatcher: o.d})
		if err != nil {
			return err
		}
		p, err := rsp.Query()
		if err != nil {
			return err
		}
		return is(p.Endpoint == e && p.Dispatcher == o.d, "it says %+v", p)
	})},
	{description("CR"), request},
	{description("EP"), query(func(o objects) error {
		e, err := o.endpoint()
		if err != nil {
			return err
		}
		p, err := e.Query()
		if err != nil {
			return err
		}
		return is(p.State == ep.Unconnected && p.PZ == o.pz && p.Recv == o.d, "it says %+v", p)
	})},
	{description("PZ"), query(func(o objects) error {
		home, err := dat.IAOf(o.pz)
		if err != nil {
			return err
		}
		return is(home == o.ia, "it is another adapter's")
	})},
	{description("LMR"), query(func(o objects) error {
		m, err := o.pz.Alloc(bufferSize, hw.AllPrivileges)
		if err != nil {
			return err
		}
		p, err := m.Query()
		if err != nil {
			return err
		}
		return is(p.Privileges == hw.AllPrivileges && m.PZ() == o.pz && len(m.Bytes()) == bufferSize, "it says %+v", p)
	})},
	{description("RMR"), query(func(o objects) error {
		m, err := o.pz.NewRMR()
		if err != nil {
			return err
		}
		p, err := m.Query()
		if err != nil {
			return err
		}
		return is(m.PZ() == o.pz, "it says %+v", p)
	})},
	{refusal("IA", "INVALID_PARAMETER", badMask), noMask},
	{refusal("IA", "INVALID_HANDLE", badIt), func(*bench) error {
		var ia *dat.IA
		_, err := dat.IAOf(ia)
		return returns("the query", err, hw.ErrInvalidHandle)
	}},
	{refusal("CNO", "INVALID_PARAMETER", badMask), noMask},
	{refusal("CNO", "INVALID_HANDLE", badIt), func(*bench) error {
		var c *evd.CNO
		_, err := c.Query()
		return returns("the query", err, hw.ErrInvalidHandle)
	}},
	{refusal("EVD", "INVALID_PARAMETER", badMask), noMask},
	{refusal("EVD", "INVALID_HANDLE", badIt), func(*bench) error {
		var d *evd.Dispatcher
		_, err := d.Query()
		return returns("the query", err, hw.ErrInvalidHandle)
	}},
	{refusal("PSP", "INVALID_PARAMETER", badMask), noMask},
	{refusal("PSP", "INVALID_HANDLE", badIt), func(*bench) error {
		var psp *ep.PSP
		_, err := psp.Query()
		return returns("the query", err, hw.ErrInvalidHandle)
	}},
}

// noMask stands for a query with a bad mask: here a query returns all fields, and takes none.
func noMask(*bench) error { return fmt.Errorf("a query takes no mask: %w", errors.ErrUnsupported) }

// request queries a connection request, which the adapter makes to itself.
func request(b *bench) error {
	o, err := b.open()
	if err != nil {
		return err
	}
	requests, err := o.ia.NewDispatcher(evd.Config{QLen: 8})
	if err != nil {
		return err
	}
	psp, err := o.ia.NewPSP(ep.PSPConfig{Dispatcher: requests})
	if err != nil {
		return err
	}
	e, err := o.endpoint()
	if err != nil {
		return err
	}
	if err := e.Connect(ep.ConnectConfig{Addr: o.ia.Attr().Address, Qual: psp.Qual()}); err != nil {
		return err
	}
	ev, _, err := requests.Wait(b.ctx, 1)
	if err != nil {
		return err
	}
	cr := ep.RequestOf(ev)
	q, err := cr.Query()
	if err != nil {
		return err
	}
	if err := is(q.Qual == psp.Qual(), "it says %+v", q); err != nil {
		return err
	}
	return cr.Reject(nil)
}
