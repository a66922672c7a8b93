package loop

import (
	"net"

	"godat/hw"
	"godat/hw/internal/soft"
)

// listener is a program's claim to a qualifier of a device name.
type listener struct {
	dev       *device
	qual      uint64
	onRequest func(hw.Request) bool
}

// Addr returns the device's name with the qualifier.
func (ln *listener) Addr() net.Addr { return ln.addr() }

func (ln *listener) addr() address { return address{Device: ln.dev.node.name, Qual: ln.qual} }

// Qual returns the qualifier.
func (ln *listener) Qual() uint64 { return ln.qual }

// Close frees the qualifier.
func (ln *listener) Close() error {
	if ln == nil || !ln.dev.node.unlisten(ln) {
		return hw.Errorf("loop.Listener.Close", hw.InvalidHandle, hw.HandlePSP, "the listener is closed")
	}
	ln.dev.Unuse(soft.Listeners)
	return nil
}

// request is a connection request. The asking side hears Refused when an Accept fails
// or when no answer comes before the device closes. After the asking side's own Break
// the answer has no effect there.
type request struct {
	// Immutable.
	dev     *device // the listener's
	local   address
	remote  address
	from    *connection
	private []byte

	soft.Request
}

// Connect offers the request to the listener before it returns. cfg.Timeout has no
// effect: the owner breaks an attempt that takes too long.
func (q *queuePair) Connect(cfg hw.ConnectConfig) error {
	const op = "Connect"
	c := q.conn
	if c == nil {
		return q.dev.Gone(op)
	}
	if err := q.dev.CheckPrivate(op, hw.Arg1, cfg.Private); err != nil {
		return err
	}
	if err := c.Attempt(op); err != nil {
		return err
	}
	from := address{Device: q.dev.node.name, Qual: q.dev.node.ephemeral()}
	c.local = from
	host := cfg.Addr
	if isHere(host) {
		host = q.dev.node.name
	}
	ln, known := find(host, cfg.Qual)
	to := address{Device: cfg.Addr, Qual: cfg.Qual}
	switch {
	case !known:
		c.refuse(hw.ReasonUnreachable, nil, &hw.Cause{Text: "no device of that name is open in this process", Local: c.local, Remote: to})
	case ln == nil:
		c.refuse(hw.ReasonRejected, nil, &hw.Cause{Text: "nobody listens there", Local: c.local, Remote: to})
	default:
		ln.offer(&request{
			dev: ln.dev, local: ln.addr(), remote: from, from: c, private: append([]byte(nil), cfg.Private...),
		})
	}
	return nil
}

// offer hands a request to the program, or refuses it.
func (ln *listener) offer(r *request) {
	if r.Offer(&r.dev.Device, r.decline, func() bool { return ln.onRequest(r) }) {
		r.decline()
	}
}

// decline refuses the request as the provider.
func (r *request) decline() {
	r.from.refuse(hw.ReasonRejected, nil, r.from.refusal(r.local, "the peer had no room for the request, or was closing"))
}

// Private returns the data that came with the request; it is never truncated.
func (r *request) Private() (data []byte, truncated bool) { return r.private, false }

// Local is the listener's address.
func (r *request) Local() net.Addr { return r.local }

// Remote is the asking side's address.
func (r *request) Remote() net.Addr { return r.remote }

// Qual is the qualifier that the request came for.
func (r *request) Qual() uint64 { return r.local.Qual }

// Accept connects at once: both sides have heard Established when it returns. When it
// returns an error, the asking side has heard Refused.
func (r *request) Accept(qp hw.QP, private []byte) error {
	q, own := soft.Own[*queuePair](qp)
	if err := r.Request.Accept(own, private, r.decline); err != nil {
		return err
	}
	b := q.conn
	b.local = r.local
	if !join(r.from, b, append([]byte(nil), private...)) {
		b.refuse(hw.ReasonUnreachable, nil, b.refusal(r.remote, "the peer gave up before it was accepted"))
	}
	return nil
}

// Reject refuses the request, without the private data if there is too much.
func (r *request) Reject(private []byte) error {
	return r.Request.Reject(private, func(private []byte) {
		r.from.refuse(hw.ReasonPeerRejected, append([]byte(nil), private...), r.from.refusal(r.local, "the peer's program rejected the request"))
	})
}
