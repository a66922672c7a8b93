package driver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"godat/check/world/model"
	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// driver makes the calls of commands, and returns their results in the model's
// terms.
type driver struct {
	ia      *dat.IA
	zones   []*mem.PZ
	regions []*memory
	evds    []*evd.Dispatcher
	eps     []*ep.Endpoint
	points  []*point
	cnos    []*evd.CNO
	windows []*mem.RMR
	binds   []named
	srqs    []*ep.SRQ
	shots   []*evd.OneShot
	blocked map[*evd.Dispatcher]*blocked
	cr      func(name string) any
	names   map[any]string // of endpoints and service points
}

// memory is a region, with what the driver must know of it after Free.
type memory struct {
	lmr     *mem.LMR
	buf     []byte
	base    uint64
	context uint32
	remote  uint32
}

func newDriver(ia *dat.IA, cr func(string) any) *driver {
	return &driver{ia: ia, cr: cr, names: make(map[any]string), blocked: make(map[*evd.Dispatcher]*blocked)}
}

// calls maps each command to its call.
var calls = map[string]func(*driver, model.Command) (model.Result, error){
	"pz": (*driver).newZone, "lmr": (*driver).newRegion, "evd": (*driver).newEVD, "ep": (*driver).newEP,
	"pz_free":   only(func(d *driver, c model.Command) error { return pick(d.zones, 'z', c.On).Close() }),
	"lmr_free":  only(func(d *driver, c model.Command) error { return d.lmr(c.On).Free() }),
	"evd_free":  only(func(d *driver, c model.Command) error { return d.evd(c.On).Close() }),
	"ep_free":   only(func(d *driver, c model.Command) error { return d.ep(c.On).Close() }),
	"lmr_query": (*driver).queryRegion, "evd_query": (*driver).queryEVD, "ep_query": (*driver).queryEP,
	"status": (*driver).status, "cr_query": (*driver).queryCR,
	"evd_resize": only(func(d *driver, c model.Command) error { return d.evd(c.On).Resize(c.Int("qlen")) }),
	"post_se":    only(func(d *driver, c model.Command) error { return d.evd(c.On).PostSoftware(c.Int("data")) }),
	"dequeue":    (*driver).dequeue, "wait": (*driver).wait,

	"evd_modify_cno":       only((*driver).modifyCNO),
	"evd_enable":           only(func(d *driver, c model.Command) error { return d.evd(c.On).Enable() }),
	"evd_disable":          only(func(d *driver, c model.Command) error { return d.evd(c.On).Disable() }),
	"evd_set_unwaitable":   only(func(d *driver, c model.Command) error { return d.evd(c.On).SetUnwaitable() }),
	"evd_clear_unwaitable": only(func(d *driver, c model.Command) error { return d.evd(c.On).ClearUnwaitable() }),
	"srq":                  (*driver).newSRQ, "srq_recv": only((*driver).sharedRecv), "srq_query": (*driver).querySRQ,
	"srq_free": only(func(d *driver, c model.Command) error { return pick(d.srqs, 'q', c.On).Close() }),
	"rmr":      (*driver).newWindow, "bind": (*driver).bind, "rmr_query": (*driver).queryWindow,
	"rmr_free": only(func(d *driver, c model.Command) error { return pick(d.windows, 'w', c.On).Free() }),
	"cno":      (*driver).newCNO, "cno_wait": (*driver).waitCNO,
	"cno_free": only(func(d *driver, c model.Command) error { return pick(d.cnos, 'n', c.On).Close() }),

	"accept": only((*driver).accept), "reject": only((*driver).reject), "disconnect": (*driver).disconnect,
	"reset": only(func(d *driver, c model.Command) error { return d.ep(c.On).Reset() }),

	"recv": (*driver).post, "send": (*driver).post, "write": (*driver).post, "read": (*driver).post,
	"write_imm": (*driver).post, "fetch_add": (*driver).post, "send_inv": (*driver).post, "read_rmr": (*driver).post, "cmp_swap": (*driver).post,
}

// only makes a call of one that returns an error only.
func only(call func(*driver, model.Command) error) func(*driver, model.Command) (model.Result, error) {
	return func(d *driver, c model.Command) (model.Result, error) { return model.Result{}, call(d, c) }
}

// do makes the call of a command.
func (d *driver) do(c model.Command) model.Result {
	call, known := calls[c.Op]
	if !known {
		panic("no call for " + c.Op)
	}
	r, err := call(d, c)
	if r.Code = codeOf(err); r.Code == notACode {
		panic(fmt.Sprintf("%s: an error without a code: %v", c, err))
	}
	return r
}

const notACode = model.Code(1 << 31)

// codeOf returns the DAT_RETURN of an error.
func codeOf(err error) model.Code {
	var e *hw.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return model.CodeOf(e.Code())
	}
	return notACode
}

func pick[T any](all []*T, kind byte, name string) *T {
	if i := model.Index(kind, name); i >= 0 && i < len(all) {
		return all[i]
	}
	return nil
}

func (d *driver) evd(name string) *evd.Dispatcher { return pick(d.evds, 'e', name) }
func (d *driver) ep(name string) *ep.Endpoint     { return pick(d.eps, 'p', name) }
func (d *driver) request(name string) *ep.CR      { cr, _ := d.cr(name).(*ep.CR); return cr }

func (d *driver) lmr(name string) *mem.LMR {
	if m := pick(d.regions, 'm', name); m != nil {
		return m.lmr
	}
	return nil
}

func (d *driver) newZone(model.Command) (model.Result, error) {
	z, err := d.ia.NewPZ()
	d.zones = append(d.zones, z)
	return model.Result{}, err
}

func (d *driver) newEVD(c model.Command) (model.Result, error) {
	e, err := d.ia.NewDispatcher(evd.Config{
		QLen: c.Int("qlen"), MaxLen: c.Int("max"), Streams: event.Streams(c.Bits("streams", model.Streams)),
	})
	d.evds = append(d.evds, e)
	return model.Result{}, err
}

func (d *driver) queryEVD(c model.Command) (model.Result, error) {
	q, err := d.evd(c.On).Query()
	return values("qlen", q.QLen, "streams", int(q.Streams)), err
}

func (d *driver) dequeue(c model.Command) (model.Result, error) {
	buf := make([]event.Event, c.Int("n"))
	n, err := d.evd(c.On).Dequeue(buf)
	return model.Result{Events: d.events(buf[:n])}, err
}

// past is a context whose deadline has passed: a wait with it looks once.
var past = func() context.Context {
	ctx, cancel := context.WithDeadline(context.Background(), time.Now())
	<-ctx.Done()
	cancel()
	return ctx
}()

func (d *driver) wait(c model.Command) (model.Result, error) {
	ev, nmore, err := d.evd(c.On).Wait(past, c.Int("threshold"))
	r := values("nmore", nmore)
	if err == nil {
		r.Events = d.events([]event.Event{ev})
	}
	return r, err
}

func (d *driver) newCNO(model.Command) (model.Result, error) {
	n, err := d.ia.NewCNO(evd.CNOConfig{})
	d.cnos = append(d.cnos, n)
	return model.Result{}, err
}

func (d *driver) waitCNO(c model.Command) (model.Result, error) {
	hint, err := pick(d.cnos, 'n', c.On).Wait(past)
	return values("hint", slices.IndexFunc(d.evds, func(e *evd.Dispatcher) bool { return e != nil && e == hint })), err
}

func (d *driver) modifyCNO(c model.Command) error {
	return d.evd(c.On).ModifyCNO(pick(d.cnos, 'n', c.Text("cno")))
}

// events converts events to the model's terms.
func (d *driver) events(evs []event.Event) (all []model.Event) {
	for _, ev := range evs {
		e := model.Event{
			Number: int(ev.Number), Source: d.names[ev.Source], Cookie: int(ev.Cookie),
			Status: int(ev.Status), Op: int(ev.Op), Length: int(ev.Length),
		}
		if imm, ok := ev.Immediate(); ok {
			e.Imm = int(imm)
			e.Flags |= model.HasImm
		}
		if context, ok := ev.InvalidatedContext(); ok {
			e.Imm = int(context)
			e.Flags |= model.Invalidated
		}
		if ev.Flags&event.Solicited != 0 {
			e.Flags |= model.Solicited
		}
		e.Private = string(ev.Private())
		if _, why, ok := ev.Async(); ok {
			e.Op = int(why)
		}
		if data, ok := ev.Software(); ok {
			e.Cookie, _ = data.(int)
		}
		if rmr := ep.RMROf(ev); rmr != nil {
			e.Private = d.names[rmr]
		}
		if cr := ep.RequestOf(ev); cr != nil {
			e.Handle, e.Attr = cr, d.own(cr)
		}
		all = append(all, e)
	}
	return all
}

func (d *driver) newEP(c model.Command) (model.Result, error) {
	attr := attrOf(c)
	e, err := d.ia.NewEndpoint(ep.Config{
		PZ: pick(d.zones, 'z', c.Text("pz")), Recv: d.evd(c.Text("recv")), Request: d.evd(c.Text("req")), Conn: d.evd(c.Text("conn")), Attr: &attr,
		SRQ: pick(d.srqs, 'q', c.Text("srq")),
	})
	d.eps = append(d.eps, e)
	if err != nil {
		return model.Result{}, err
	}
	d.names[e] = c.On
	q, err := e.Query()
	return attrValues(&q.Attr), err
}

func (d *driver) status(c model.Command) (model.Result, error) {
	s, err := d.ep(c.On).Status()
	return values("state", int(s.State), "recv_idle", number(s.RecvIdle), "request_idle", number(s.RequestIdle)), err
}

func (d *driver) queryEP(c model.Command) (model.Result, error) {
	q, err := d.ep(c.On).Query()
	r := attrValues(&q.Attr)
	maps.Copy(r.Values, values("state", int(q.State), "local", number(q.LocalAddr != nil), "remote", number(q.RemoteAddr != nil),
		"pz", indexOf(d.zones, q.PZ), "recv", indexOf(d.evds, q.Recv), "req", indexOf(d.evds, q.Request), "conn", indexOf(d.evds, q.Conn)).Values)
	return r, err
}

// indexOf returns the number of an object; -1 for nil.
func indexOf[T any](all []*T, o *T) int {
	if o == nil {
		return -1
	}
	return slices.Index(all, o)
}

func (d *driver) queryCR(c model.Command) (model.Result, error) {
	q, err := d.request(c.On).Query()
	return values("qual", int(q.Qual), "private", len(q.Private), "intact", number(string(q.Private) == model.Private(len(q.Private))),
		"truncated", number(q.Truncated), "own", indexOf(d.eps, q.Endpoint)), err
}

func (d *driver) accept(c model.Command) error {
	return d.request(c.On).Accept(d.ep(c.Text("ep")), []byte(model.Private(c.Int("private"))))
}

func (d *driver) reject(c model.Command) error {
	return d.request(c.On).Reject([]byte(model.Private(c.Int("private"))))
}

func (d *driver) disconnect(c model.Command) (model.Result, error) {
	how := map[string]ep.CloseFlags{"": ep.Abrupt, "graceful": ep.Graceful, "bad": 7}[c.Text("how")]
	return model.Result{}, d.ep(c.On).Disconnect(how)
}

func (d *driver) post(c model.Command) (model.Result, error) {
	e, cookie, flags := d.ep(c.On), uint64(c.Int("cookie")), hw.Flags(c.Bits("flags", model.Flags))
	local := d.local(c)
	remote := d.remote(c, "remote")
	var one mem.Segment
	if len(local) > 0 {
		one = local[0]
	}
	var err error
	switch c.Op {
	case "recv":
		err = e.PostRecv(cookie, flags, local...)
	case "send_inv":
		err = e.PostSendInvalidate(cookie, flags, remote.Context, local...)
	case "read_rmr":
		err = e.PostRDMAReadToRMR(cookie, flags, d.remote(c, "local"), remote)
	case "send":
		err = e.PostSend(cookie, flags, local...)
	case "write":
		err = e.PostRDMAWrite(cookie, flags, remote, local...)
	case "read":
		err = e.PostRDMARead(cookie, flags, remote, local...)
	case "write_imm":
		err = e.PostRDMAWriteImmediate(cookie, flags, uint32(c.Int("imm")), remote, local...)
	case "fetch_add":
		err = e.PostFetchAdd(cookie, flags, uint64(c.Int("add")), remote, one)
	case "cmp_swap":
		err = e.PostCompareSwap(cookie, flags, uint64(c.Int("cmp")), uint64(c.Int("add")), remote, one)
	}
	return model.Result{}, err
}

// at returns the region of a segment; for one that was never made, a context that no
// region has, at an address from which no offset reaches below 0.
func (d *driver) at(s model.Segment) memory {
	if s.Region >= 0 && s.Region < len(d.regions) && d.regions[s.Region].lmr != nil {
		return *d.regions[s.Region]
	}
	return memory{base: 1 << 20, context: 1<<31 - 7, remote: 1<<31 - 7}
}

// remote returns the remote segment of a command.
func (d *driver) remote(c model.Command, key string) (remote mem.RemoteSegment) {
	for _, s := range c.Segments(key) {
		if s.Window {
			remote = d.through(s)
			continue
		}
		m := d.at(s)
		remote = mem.RemoteSegment{Addr: m.base + uint64(s.Off), Len: uint32(s.Len), Context: m.remote}
	}
	return remote
}

// local returns the local segments of a post.
func (d *driver) local(c model.Command) (all []mem.Segment) {
	for _, s := range c.Segments("local") {
		m := d.at(s)
		all = append(all, mem.Segment{Addr: m.base + uint64(s.Off), Len: uint32(s.Len), Context: m.context})
	}
	return all
}

// values makes a result's values from pairs of a name and a value.
func values(pairs ...any) model.Result {
	r := model.Result{Values: make(map[string]int, len(pairs)/2)}
	for i := 0; i < len(pairs); i += 2 {
		r.Values[pairs[i].(string)] = pairs[i+1].(int)
	}
	return r
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
