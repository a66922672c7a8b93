package mistakes

import (
	"context"
	"io"
	"net"
	"strings"
	"syscall"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
	"godat/runtime/inspect"
)

// table has the mistakes that can be made on any provider.
var table = append(append(append([]mistake{}, addresses...), messages...), posts...)

// addresses are mistakes with names, addresses and contexts.
var addresses = []mistake{
	{"a provider that does not exist", `"lop"`, "registered: ", hw.ErrProviderNotFound, func(d *desk) error {
		_, err := dat.Open(d.ctx, "lop")
		return err
	}},
	{"ibv without its import", `"ibv"`, `import _ "godat/hw/ibv"`, hw.ErrProviderNotFound, func(d *desk) error {
		_, err := dat.Open(d.ctx, "ibv")
		return err
	}},
	{"no provider's name", "empty", "registered: iwarp, loop", hw.ErrInvalidParameter, func(d *desk) error {
		_, err := dat.Open(d.ctx, "")
		return err
	}},
	{"a parameter that the provider does not have", `no parameter "hue"`, "those of ", hw.ErrInvalidParameter, func(d *desk) error {
		_, err := dat.Open(d.ctx, d.name, dat.WithParams(map[string]string{"hue": "red"}))
		return err
	}},
	{"a nil context", "nil context", "context.Background()", hw.ErrInvalidParameter, func(d *desk) error {
		_, err := dat.Open(nil, d.name) //nolint:staticcheck // that is the mistake
		return err
	}},
	{"a context that is over", "context canceled", "the peer had not answered", context.Canceled, func(d *desk) error {
		ctx, cancel := context.WithCancel(d.ctx)
		cancel()
		_, err := d.ia.Dial(ctx, d.ln.Addr(), dat.ConnConfig{})
		return err
	}},
	{"an address without a port", `"127.0.0.1"`, "host:port", hw.ErrInvalidAddress, func(d *desk) error {
		_, err := d.ia.Dial(d.ctx, "127.0.0.1", dat.ConnConfig{})
		return err
	}},
	{"a port without a colon", `"7000"`, "host:port", hw.ErrInvalidAddress, func(d *desk) error {
		_, err := d.ia.Dial(d.ctx, "7000", dat.ConnConfig{})
		return err
	}},
	{"a port without a colon to listen at", `"7000"`, ":7000", hw.ErrInvalidAddress, func(d *desk) error {
		_, err := d.ia.Listen(d.ctx, "7000", dat.ConnConfig{})
		return err
	}},
	{"the address of another page", "has a page at 127.0.0.1:", "another address, or port 0", syscall.EADDRINUSE, func(d *desk) error {
		url, err := inspect.Serve(d.ctx, "127.0.0.1:0", "", d.ia)
		if err == nil {
			_, err = inspect.Serve(d.ctx, strings.Trim(strings.TrimPrefix(url, "http://"), "/"), "", d.ia)
		}
		return err
	}},
	{"a port's name", `"127.0.0.1:http"`, "host:port", hw.ErrInvalidAddress, func(d *desk) error {
		_, err := d.ia.Dial(d.ctx, "127.0.0.1:http", dat.ConnConfig{})
		return err
	}},
	{"a URL", `"tcp://127.0.0.1:7000"`, "host:port", hw.ErrInvalidAddress, func(d *desk) error {
		_, err := d.ia.Dial(d.ctx, "tcp://127.0.0.1:7000", dat.ConnConfig{})
		return err
	}},
	{"a dial to a closed port", "127.0.0.1:1", "listens there", event.Error(event.NonPeerRejected), func(d *desk) error {
		_, err := d.ia.Dial(d.ctx, "127.0.0.1:1", dat.ConnConfig{})
		return err
	}},
	{"a port that is in use", "in use", "port 0", hw.ErrConnQualInUse, func(d *desk) error {
		_, err := d.ia.Listen(d.ctx, d.ln.Addr(), dat.ConnConfig{})
		return err
	}},
	{"a dial that nobody accepts", "did not answer", "has not accepted", hw.ErrTimeout, func(d *desk) error {
		ctx, cancel := context.WithTimeout(d.ctx, 100e6)
		defer cancel()
		_, err := d.ia.Dial(ctx, d.ln.Addr(), dat.ConnConfig{})
		return err
	}},
	{"a depth below zero", "Depth is -1", "1 to", hw.ErrInvalidParameter, func(d *desk) error {
		_, err := d.ia.Listen(d.ctx, d.at, dat.ConnConfig{Depth: -1})
		return err
	}},
	{"a message of a negative size", "Message is -1", "1 to", hw.ErrInvalidParameter, func(d *desk) error {
		_, err := d.ia.Dial(d.ctx, d.ln.Addr(), dat.ConnConfig{Message: -1})
		return err
	}},
	{"a zone of another adapter", "another adapter", "NewPZ", hw.ErrInvalidHandle, func(d *desk) error {
		other := open(d.T, d.name)
		_, err := d.ia.Dial(d.ctx, d.ln.Addr(), dat.ConnConfig{PZ: must(other.NewPZ())})
		return err
	}},
	{"a zero adapter", "nil or closed", "dat.Open", hw.ErrInvalidHandle, func(*desk) error {
		return new(dat.IA).Close()
	}},
	{"a zero adapter that listens", "nil or closed", "dat.Open", hw.ErrInvalidHandle, func(d *desk) error {
		_, err := new(dat.IA).Listen(d.ctx, ":0", dat.ConnConfig{})
		return err
	}},
	{"an adapter after Close", "closed", "dat.Open", net.ErrClosed, func(d *desk) error {
		ia := open(d.T, d.name)
		_ = ia.Close()
		_, err := ia.NewPZ()
		return err
	}},
	{"a request that is accepted twice", "answered", "once", hw.ErrInvalidHandle, func(d *desk) error {
		go func() { _, _ = d.ia.Dial(d.ctx, d.ln.Addr(), dat.ConnConfig{}) }()
		cr := ep.RequestOf(d.next(d.ln.Requests()))
		must(d.ln.Accept(cr, nil))
		_, err := d.ln.Accept(cr, nil)
		return err
	}},
	{"another event taken for a request", "no request", "RequestOf", hw.ErrInvalidHandle, func(d *desk) error {
		_, err := d.ln.Accept(ep.RequestOf(event.Event{Number: event.Established}), nil)
		return err
	}},
	{"more connections than Conns", "1 connection", "Conns", hw.ErrInsufficientResources, func(d *desk) error {
		ln := must(d.ia.Listen(d.ctx, d.at, dat.ConnConfig{Conns: 1}))
		must(ln.Dial(d.ln.Addr(), nil))
		_, err := ln.Dial(d.ln.Addr(), nil)
		return err
	}},
}

// messages are mistakes with messages, buffers and connections.
var messages = []mistake{
	{"a message that is too long", "65 bytes", "ConnConfig.Message", hw.ErrLength, func(d *desk) error {
		return d.client.SendBytes(make([]byte, 65))
	}},
	{"a write beyond a buffer", "of 65 bytes 64 found room", "ConnConfig.Message", io.ErrShortBuffer, func(d *desk) error {
		_, err := d.client.Buffer().Write(make([]byte, 65))
		return err
	}},
	{"a buffer that is sent twice", "has been sent", "take another by Buffer", hw.ErrInvalidParameter, func(d *desk) error {
		b := d.client.Buffer()
		_ = d.client.Send(b)
		return d.client.Send(b)
	}},
	{"a buffer that is released twice", "put twice", "Release", errPanic, func(d *desk) error {
		b := d.client.Buffer()
		d.client.Release(b)
		d.client.Release(b)
		return nil
	}},
	{"Put in place of Release", "released", "Buffer", hw.ErrInvalidParameter, func(d *desk) error {
		b := d.client.Buffer()
		b.Put()
		return d.client.Send(b)
	}},
	{"a use after Release", "was used", "the pool has it, by Put or Release", errPanic, func(d *desk) error {
		d.listen(dat.ConnConfig{Debug: true})
		b := d.client.Buffer()
		d.client.Release(b)
		_ = b.Bytes()
		return nil
	}},
	{"a write behind Send", "sent", "not the caller's", hw.ErrInvalidState, func(d *desk) error {
		b := d.client.Buffer()
		_ = d.client.Send(b)
		_, err := b.Write([]byte("more"))
		return err
	}},
	{"another connection's buffer", "not of this connection", "its Buffer", hw.ErrInvalidParameter, func(d *desk) error {
		return d.client.Send(d.server.Buffer())
	}},
	{"buffers that are never released", "4 buffers", "Release gives one back", hw.ErrInsufficientResources, func(d *desk) error {
		for range 4 {
			d.client.Buffer()
		}
		return d.client.SendBytes([]byte("one more"))
	}},
	{"a nil buffer", "no buffer", "WaitBuffer waits", hw.ErrInvalidParameter, func(d *desk) error {
		for range 4 {
			d.client.Buffer()
		}
		return d.client.Send(d.client.Buffer())
	}},
	{"messages that nobody receives", "no receive posted", "ConnConfig.Depth", event.Error(event.Broken), func(d *desk) error {
		for range 100 {
			b, err := d.client.WaitBuffer(d.ctx)
			if err != nil {
				return err
			}
			if err = d.client.Send(b); err != nil {
				return err
			}
		}
		return d.end(d.client)
	}},
	{"a message longer than the peer's buffers", "longer than the receive", "ConnConfig.Message", event.Error(event.Broken), func(d *desk) error {
		go func() { _, _ = d.ln.Accept(ep.RequestOf(<-d.ln.Requests()), nil) }()
		c := must(d.ia.Dial(d.ctx, d.ln.Addr(), dat.ConnConfig{Message: 128}))
		_ = c.SendBytes(make([]byte, 128))
		return d.end(c)
	}},
	{"a message after Close", "closed", "Dial", net.ErrClosed, func(d *desk) error {
		_ = d.client.Close()
		return d.client.SendBytes([]byte("late"))
	}},
	{"Receive of batches", "by the channel Batches", "range over that", hw.ErrInvalidState, func(d *desk) error {
		go func() { _, _ = d.ln.Accept(ep.RequestOf(<-d.ln.Requests()), nil) }()
		_, err := must(d.ia.Dial(d.ctx, d.ln.Addr(), dat.ConnConfig{Batches: true})).Receive(d.ctx)
		return err
	}},
	{"Close in the hook Established", "from a hook of a connection", "in a goroutine of its own", hw.ErrInvalidState, func(d *desk) error {
		got := make(chan error, 1)
		go func() { _, _ = d.ln.Accept(ep.RequestOf(<-d.ln.Requests()), nil) }()
		must(d.ia.Dial(d.ctx, d.ln.Addr(), dat.ConnConfig{Established: func(c *dat.Conn) { got <- c.Close() }}))
		return <-got
	}},
	{"the connection's cookies", "cookie", "highest bit", hw.ErrInvalidParameter, func(d *desk) error {
		r := d.region(8, hw.LocalRead)
		return d.client.Endpoint.PostSend(1<<63, 0, r.Segment(0, 8))
	}},
	{"the event of another connection", "no buffer", "of another's", hw.ErrInvalidParameter, func(d *desk) error {
		_ = d.client.SendBytes([]byte("hello"))
		ev := d.next(d.server.Events())
		return d.client.Send(d.client.Message(ev))
	}},
	{"Message twice", "no buffer", "of an event twice", hw.ErrInvalidParameter, func(d *desk) error {
		_ = d.client.SendBytes([]byte("hello"))
		ev := d.next(d.server.Events())
		d.server.Message(ev)
		return d.server.Send(d.server.Message(ev))
	}},
}

// posts are mistakes with regions, endpoints and dispatchers.
var posts = []mistake{
	{"a region of no bytes", "0 bytes", "1 at least", hw.ErrLength, func(d *desk) error {
		_, err := d.client.Alloc(0, hw.LocalRead)
		return err
	}},
	{"a region of a negative size", "-1 bytes", "1 at least", hw.ErrLength, func(d *desk) error {
		_, err := d.client.Alloc(-1, hw.LocalRead)
		return err
	}},
	{"a region of nil memory", "0 bytes", "1 at least", hw.ErrLength, func(d *desk) error {
		_, err := d.client.Register(nil, hw.LocalRead)
		return err
	}},
	{"a segment beyond its region", "length 9", "the region of 8 bytes", hw.ErrProtection, func(d *desk) error {
		return d.client.Endpoint.PostSend(1, 0, d.region(8, hw.LocalRead).Segment(0, 9))
	}},
	{"a segment of a negative length", "a negative length", "the region has 8 bytes", hw.ErrProtection, func(d *desk) error {
		return d.client.Endpoint.PostSend(1, 0, d.region(8, hw.LocalRead).Segment(0, -1))
	}},
	{"a segment of a freed region", "freed", "LMR.Segment", hw.ErrInvalidHandle, func(d *desk) error {
		r := d.region(8, hw.LocalRead)
		seg := r.Segment(0, 8)
		_ = r.Free()
		return d.client.Endpoint.PostSend(1, 0, seg)
	}},
	{"a region of another zone", "another protection zone", "Conn.Alloc", hw.ErrProtection, func(d *desk) error {
		r := must(d.server.Alloc(8, hw.LocalRead))
		return d.client.Endpoint.PostSend(1, 0, r.Segment(0, 8))
	}},
	{"a region of another adapter", "no region of this adapter", "LMR.Segment", hw.ErrInvalidHandle, func(d *desk) error {
		r := must(must(open(d.T, d.name).NewPZ()).Alloc(8, hw.LocalRead))
		return d.client.Endpoint.PostSend(1, 0, r.Segment(0, 8))
	}},
	{"a privilege that is missing here", "has LOCAL_READ", "needs LOCAL_WRITE", hw.ErrPrivileges, func(d *desk) error {
		return d.client.Endpoint.PostRecv(1, 0, d.region(8, hw.LocalRead).Segment(0, 8))
	}},
	{"a privilege that is missing at the peer", "privileges", "RemoteWrite", event.Error(event.Broken), func(d *desk) error {
		r := must(d.server.Alloc(8, hw.LocalRead|hw.RemoteRead))
		_ = d.client.Endpoint.PostRDMAWrite(1, 0, r.Remote(0, 8), d.region(8, hw.LocalRead).Segment(0, 8))
		return d.end(d.client)
	}},
	{"a region without privileges for peers", "privileges", "RemoteWrite", event.Error(event.Broken), func(d *desk) error {
		r := must(d.server.Alloc(8, hw.LocalRead))
		_ = d.client.Endpoint.PostRDMAWrite(1, 0, r.Remote(0, 8), d.region(8, hw.LocalRead).Segment(0, 8))
		return d.end(d.client)
	}},
	{"a remote key of a freed region", "the key is of no region", "or of one that was freed", event.Error(event.Broken), func(d *desk) error {
		r := must(d.server.Alloc(8, hw.LocalRead|hw.RemoteWrite))
		remote := r.Remote(0, 8)
		_ = r.Free()
		_ = d.client.Endpoint.PostRDMAWrite(1, 0, remote, d.region(8, hw.LocalRead).Segment(0, 8))
		return d.end(d.client)
	}},
	{"a write beyond the peer's segment", "8 bytes here, 4 at the peer", "of one length", hw.ErrLength, func(d *desk) error {
		r := must(d.server.Alloc(8, hw.LocalRead|hw.RemoteWrite))
		return d.client.Endpoint.PostRDMAWrite(1, 0, r.Remote(0, 4), d.region(8, hw.LocalRead).Segment(0, 8))
	}},
	{"half of a remote segment", "8 bytes", "a remote segment has 16", hw.ErrInvalidParameter, func(d *desk) error {
		_, err := mem.ParseRemoteSegment(make([]byte, 8))
		return err
	}},
	{"an atomic of 4 bytes", "4 bytes here", "an atomic has 8", hw.ErrLength, func(d *desk) error {
		r := must(d.server.Alloc(8, hw.RemoteAtomic))
		return d.client.Endpoint.PostFetchAdd(1, 0, 1, r.Remote(0, 8), d.region(8, hw.LocalWrite).Segment(0, 4))
	}},
	{"an atomic at an odd address", "an atomic", "multiple of 8", event.Error(event.Broken), func(d *desk) error {
		r := must(d.server.Alloc(16, hw.RemoteAtomic))
		_ = d.client.Endpoint.PostFetchAdd(1, 0, 1, r.Remote(1, 8), d.region(8, hw.LocalWrite).Segment(0, 8))
		return d.end(d.client)
	}},
	{"a post before connect", "EP unconnected", "CommonConnect connects it", hw.ErrInvalidState, func(d *desk) error {
		e, r := d.endpoint(16)
		return e.PostSend(1, 0, r.Segment(0, 8))
	}},
	{"a post after Close", "closed", "NewEndpoint", hw.ErrInvalidHandle, func(d *desk) error {
		e, r := d.endpoint(16)
		_ = e.Close()
		return e.PostSend(1, 0, r.Segment(0, 8))
	}},
	{"a flag that the operation does not have", "SOLICITED_WAIT", "RDMA_WRITE", hw.ErrInvalidParameter, func(d *desk) error {
		r := must(d.server.Alloc(8, hw.RemoteWrite))
		return d.client.Endpoint.PostRDMAWrite(1, hw.SolicitedWait, r.Remote(0, 8), d.region(8, hw.LocalRead).Segment(0, 8))
	}},
	{"a dispatcher without QLen", "QLen is required", "how many events the dispatcher holds", hw.ErrInvalidParameter, func(d *desk) error {
		_, err := d.ia.NewDispatcher(evd.Config{})
		return err
	}},
	{"a dispatcher of another adapter", "another adapter", "NewDispatcher", hw.ErrInvalidHandle, func(d *desk) error {
		other := must(open(d.T, d.name).NewDispatcher(evd.Config{QLen: 4}))
		_, err := d.ia.NewEndpoint(ep.Config{PZ: must(d.ia.NewPZ()), Recv: other, Request: other, Conn: other})
		return err
	}},
	{"an endpoint without a zone", "needs a protection zone", "IA.NewPZ makes one", hw.ErrInvalidHandle, func(d *desk) error {
		_, err := d.ia.NewEndpoint(ep.Config{})
		return err
	}},
	{"an endpoint that connects without a dispatcher for that", "no connection EVD", "ep.Config.Conn", hw.ErrInvalidState, func(d *desk) error {
		e := must(d.ia.NewEndpoint(ep.Config{PZ: must(d.ia.NewPZ())}))
		return e.CommonConnect(d.ln.Addr(), ep.ConnectConfig{})
	}},
	{"events that nobody drains", "4 places are reserved or hold events", "QLen is 4", hw.ErrInsufficientResources, func(d *desk) error {
		e, r := d.endpoint(4)
		for range 100 {
			if err := e.PostRecv(1, 0, r.Segment(0, 8)); err != nil {
				return err
			}
		}
		return nil
	}},
	{"a callback that is missing", "no callback", "evd.Config.Callback", hw.ErrInvalidParameter, func(d *desk) error {
		_, err := d.ia.NewDispatcher(evd.Config{QLen: 4, Mode: evd.ModeCallback})
		return err
	}},
	{"a callback without its mode", "mode queue never calls", "ModeCallback", hw.ErrInvalidParameter, func(d *desk) error {
		_, err := d.ia.NewDispatcher(evd.Config{QLen: 4, Callback: func([]event.Event) {}})
		return err
	}},
	{"a dequeue of a channel", "has a waiter", "by C", hw.ErrInvalidState, func(d *desk) error {
		_, err := must(d.ia.NewDispatcher(evd.Config{QLen: 4, Mode: evd.ModeChannel})).Dequeue(make([]event.Event, 1))
		return err
	}},
	{"two that wait at one dispatcher", "another goroutine waits there", "by C, Batches or the callback", hw.ErrInvalidState, func(d *desk) error {
		x := must(d.ia.NewDispatcher(evd.Config{QLen: 4, Mode: evd.ModeQueue}))
		errs := make(chan error, 2)
		for range 2 {
			go func() { _, _, err := x.Wait(d.ctx, 1); errs <- err }()
		}
		return <-errs
	}},
	{"a dispatcher that is closed before its endpoint", "EVD in use", "close that first", hw.ErrInvalidState, func(d *desk) error {
		x := must(d.ia.NewDispatcher(evd.Config{QLen: 4}))
		must(d.ia.NewEndpoint(ep.Config{PZ: must(d.ia.NewPZ()), Recv: x}))
		return x.Close()
	}},
	{"a zone that is closed before its region", "1 regions", "free or close these first", hw.ErrInvalidState, func(d *desk) error {
		pz := must(d.ia.NewPZ())
		must(pz.Alloc(8, hw.LocalRead))
		return pz.Close()
	}},
	{"a graceful close of what is in use", "IA in use", "or Close, which closes them", hw.ErrInvalidState, func(d *desk) error {
		return d.ia.CloseGraceful()
	}},
	{"an endpoint that connects twice", "EP connected", "Reset", hw.ErrInvalidState, func(d *desk) error {
		return d.client.Endpoint.CommonConnect(d.ln.Addr(), ep.ConnectConfig{})
	}},
}

// endpoint makes an endpoint with a dispatcher of so many places, and memory for it.
func (d *desk) endpoint(places int) (*ep.Endpoint, *mem.LMR) {
	d.Helper()
	x := must(d.ia.NewDispatcher(evd.Config{QLen: places, Mode: evd.ModeQueue}))
	pz := must(d.ia.NewPZ())
	e := must(d.ia.NewEndpoint(ep.Config{PZ: pz, Recv: x, Request: x, Conn: x}))
	return e, must(pz.Alloc(64, hw.LocalRead|hw.LocalWrite))
}
