package server

import (
	"errors"

	"go.uber.org/zap"

	"godat/examples/blockstore/proto"
	dat "godat/runtime"
)

// session is one client.
type session struct {
	server *Server
	number int
	limits proto.Limits

	pz               *dat.PZ
	ep               *dat.Endpoint
	window, messages *dat.LMR
	slots            []slot
	gathered         int // PUTs of this session in the batch
	gone             bool
}

// slot is a place in the window, and the request that it is used for.
type slot struct {
	block   []byte // of the window: the client may write it at any time
	receive message
	reply   message

	state slotState
	next  proto.Message // came while the reply's buffer was still in use
	early bool          // next is set
}

// slotState says how far a slot's request is.
type slotState uint8

const (
	idle     slotState = iota
	working            // a request came; its reply has not been posted
	replying           // the reply has been posted; its buffer is not ours yet
)

// message is the memory of one control message.
type message struct {
	bytes   []byte
	segment dat.Segment
}

// A cookie says whose completion it is: session, kind, slot or receive.
const (
	cookieReceive = 1
	cookieReply   = 2
)

func (c *session) cookie(kind, slot int) uint64 {
	return uint64(c.number)<<32 | uint64(kind)<<16 | uint64(slot)
}

func sessionOf(cookie uint64) int { return int(cookie >> 32) }
func kindOf(cookie uint64) int    { return int(cookie >> 16 & 0xffff) }
func slotOf(cookie uint64) int    { return int(cookie & 0xffff) }

// open makes a session that waits for its client. On an error it may be half
// made, and is to be closed.
func (s *Server) open(number int, l proto.Limits) (*session, error) {
	c := &session{server: s, number: number, limits: l, slots: make([]slot, l.Slots)}
	if err := c.allocate(); err != nil {
		return c, err
	}
	for i := range c.slots {
		if err := c.receive(i); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (c *session) allocate() (err error) {
	ia, n := c.server.ia, c.limits.Slots
	if c.pz, err = ia.NewPZ(); err != nil {
		return err
	}
	// Clients come and go for as long as the server runs: freed memory is given
	// back at once.
	c.window, err = c.pz.Alloc(c.limits.Window(), dat.RemoteRead|dat.RemoteWrite, dat.WithUnmapOnFree())
	if err != nil {
		return err
	}
	c.messages, err = c.pz.Alloc(2*n*proto.MessageLen, dat.LocalRead|dat.LocalWrite, dat.WithUnmapOnFree())
	if err != nil {
		return err
	}
	for i := range c.slots {
		at := i * c.limits.Block
		c.slots[i].block = c.window.Bytes()[at : at+c.limits.Block]
		c.slots[i].receive = c.message(2 * i)
		c.slots[i].reply = c.message(2*i + 1)
	}
	d := c.server.events
	c.ep, err = ia.NewEndpoint(dat.EndpointConfig{
		PZ: c.pz, Recv: d, Request: d, Conn: d,
		Attr: &dat.EndpointAttr{MaxRecvDTOs: n, MaxRequestDTOs: n, DrainTimeout: drainTime},
	})
	return err
}

func (c *session) message(i int) message {
	at := i * proto.MessageLen
	return message{
		bytes:   c.messages.Bytes()[at : at+proto.MessageLen],
		segment: c.messages.Segment(at, proto.MessageLen),
	}
}

// accept answers the request that the session was opened for.
func (c *session) accept(cr *dat.CR) error {
	w := proto.Welcome{Limits: c.limits, Window: c.window.Remote(0, c.limits.Window())}
	return cr.Accept(c.ep, w.Append(nil))
}

// receive posts receive i.
func (c *session) receive(i int) error {
	return c.ep.PostRecv(c.cookie(cookieReceive, i), dat.Default, c.slots[i].receive.segment)
}

// disconnect asks for the end of the connection; the session is closed when it
// has come.
func (c *session) disconnect(how dat.CloseFlags) {
	c.gone = true
	if err := c.ep.Disconnect(how); err != nil {
		c.server.log.Debug("disconnect", zap.Int("session", c.number), zap.Error(err))
	}
}

// close gives back what the session has. What of it is in the batch is kept
// nevertheless; nobody hears of it.
func (c *session) close() {
	c.gone = true
	var errs []error
	if c.ep != nil {
		errs = append(errs, c.ep.Close())
	}
	for _, lmr := range []*dat.LMR{c.window, c.messages} {
		if lmr != nil {
			errs = append(errs, lmr.Free())
		}
	}
	if c.pz != nil {
		errs = append(errs, c.pz.Close())
	}
	if err := errors.Join(errs...); err != nil {
		c.server.log.Warn("close session", zap.Int("session", c.number), zap.Error(err))
	}
}
