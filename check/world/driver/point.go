package driver

import (
	"fmt"
	"io"
	"net"
	"strconv"

	"godat/check/world/model"
	"godat/ep"
)

func init() {
	calls["psp"], calls["rsp"], calls["csp"] = (*driver).newPSP, (*driver).newRSP, (*driver).newCSP
	for _, kind := range []string{"psp", "rsp", "csp"} {
		calls[kind+"_free"] = only(func(d *driver, c model.Command) error { return d.point(c.On, kind).Close() })
	}
	calls["sp_query"] = (*driver).queryPoint
	calls["handoff"] = func(d *driver, c model.Command) (model.Result, error) {
		to := uint64(9999)
		if s := pick(d.points, 's', c.Text("to")); s != nil {
			to = s.qual
		}
		return model.Result{}, d.request(c.On).Handoff(to)
	}
}

// point is a service point of any kind.
type point struct {
	kind string
	io.Closer
	qual uint64
}

// point returns the service point with a name, or a nil one of the kind.
func (d *driver) point(name, kind string) io.Closer {
	if s := pick(d.points, 's', name); s != nil && s.kind == kind {
		return s.Closer
	}
	return map[string]io.Closer{"psp": (*ep.PSP)(nil), "rsp": (*ep.RSP)(nil), "csp": (*ep.CSP)(nil)}[kind]
}

// made records a service point that was made, or nil if the call failed.
func (d *driver) made(c model.Command, s io.Closer, qual func() uint64, err error) (model.Result, error) {
	if err != nil {
		d.points = append(d.points, nil)
		return model.Result{}, err
	}
	d.points = append(d.points, &point{c.Op, s, qual()})
	d.names[s] = c.On
	return values("qual", int(qual())), nil
}

func (d *driver) newPSP(c model.Command) (model.Result, error) {
	cfg := ep.PSPConfig{Qual: uint64(c.Int("qual")), Dispatcher: d.evd(c.Text("evd")), Backlog: c.Int("backlog")}
	if c.Has("makes") {
		cfg.Flags = ep.PSPProvider
	}
	s, err := d.ia.NewPSP(cfg)
	return d.made(c, s, s.Qual, err)
}

func (d *driver) newRSP(c model.Command) (model.Result, error) {
	s, err := d.ia.NewRSP(ep.RSPConfig{Qual: uint64(c.Int("qual")), Dispatcher: d.evd(c.Text("evd")), Endpoint: d.ep(c.Text("ep"))})
	return d.made(c, s, s.Qual, err)
}

func (d *driver) newCSP(c model.Command) (model.Result, error) {
	s, err := d.ia.NewCSP(ep.CSPConfig{
		Address: fmt.Sprintf(":%d", c.Int("qual")), Dispatcher: d.evd(c.Text("evd")), Backlog: c.Int("backlog"),
	})
	return d.made(c, s, func() uint64 { return portOf(s.Addr()) }, err)
}

func (d *driver) queryPoint(c model.Command) (model.Result, error) {
	s := pick(d.points, 's', c.On)
	if s == nil {
		_, err := (*ep.PSP)(nil).Query()
		return model.Result{}, err
	}
	switch s := s.Closer.(type) {
	case *ep.RSP:
		q, err := s.Query()
		return values("qual", int(q.Qual), "evd", indexOf(d.evds, q.Dispatcher), "ep", indexOf(d.eps, q.Endpoint)), err
	case *ep.CSP:
		q, err := s.Query()
		if err != nil {
			return model.Result{}, err
		}
		return values("qual", int(portOf(s.Addr())), "evd", indexOf(d.evds, q.Dispatcher), "ep", -1), nil
	default:
		q, err := s.(*ep.PSP).Query()
		return values("qual", int(q.Qual), "evd", indexOf(d.evds, q.Dispatcher), "ep", -1, "makes", int(q.Flags)), err
	}
}

// own names the endpoint that a service point made for a request, and returns its
// attributes; nil if there is none.
func (d *driver) own(cr *ep.CR) *map[string]int {
	q, err := cr.Query()
	if err != nil || q.Endpoint == nil || d.names[q.Endpoint] != "" {
		return nil
	}
	d.names[q.Endpoint] = fmt.Sprintf("p%d", len(d.eps))
	d.eps = append(d.eps, q.Endpoint)
	p, err := q.Endpoint.Query()
	if err != nil {
		return nil
	}
	r := attrValues(&p.Attr)
	return &r.Values
}

// portOf returns the qualifier in an address: its port.
func portOf(a net.Addr) uint64 {
	_, port, _ := net.SplitHostPort(a.String())
	n, _ := strconv.ParseUint(port, 10, 64)
	return n
}
