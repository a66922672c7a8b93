package iwarp

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"

	"godat/hw"
	"godat/hw/internal/reject"
	"godat/hw/iwarp/wire"
)

// Connect starts the attempt. cfg.Timeout bounds it, or the parameter reply where there is
// no timeout: a peer that lets TCP connect and then says nothing looks like one whose
// program takes its time to answer.
func (q *queuePair) Connect(cfg hw.ConnectConfig) error {
	const op = "Connect"
	c := q.conn
	switch {
	case c == nil:
		return q.dev.Gone(op)
	case cfg.Qual > hw.MaxQual:
		return q.dev.Errorf(op, hw.InvalidParameter, hw.Arg1, "connection qualifier %d is no TCP port", cfg.Qual)
	}
	if err := q.dev.CheckPrivate(op, hw.Arg1, cfg.Private); err != nil {
		return err
	}
	if err := c.Attempt(op); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	if limit := cmp.Or(cfg.Timeout, q.dev.set.reply); limit > 0 {
		ctx, cancel = context.WithTimeout(context.Background(), limit)
	}
	if !c.adopt(nil, cancel) {
		cancel()
		return q.dev.Errorf(op, hw.InvalidState, hw.StateEPDisconnected, "the queue pair is broken")
	}
	cfg.Private = slices.Clone(cfg.Private)
	q.dev.running.Add(1)
	go c.initiate(ctx, cancel, cfg)
	return nil
}

// initiate is the goroutine of a connection that this end asks for. It becomes the
// receiver's goroutine.
func (c *connection) initiate(ctx context.Context, cancel context.CancelFunc, cfg hw.ConnectConfig) {
	connectionLabel.Set()
	defer c.dev.running.Done()
	defer cancel()
	c.qp.awaitEndReports()
	revision := c.dev.set.revision
	up, err := c.ask(ctx, cfg, revision)
	var first *hw.Cause
	if errors.Is(err, errHungUp) && revision == wire.MPARevision2 && c.dev.set.fallback {
		first = dialCause(err)
		up, err = c.ask(ctx, cfg, wire.MPARevision1)
	}
	switch {
	case err != nil:
		c.refuse(reasonOf(ctx, err), nil, c.howFar(behind(first, err)))
	case up:
		c.recv.receive()
	}
}

// errHungUp says that the peer closed the connection before it answered.
var errHungUp = errors.New("iwarp: the peer hung up")

// ask makes one attempt. When it returns neither up nor an error, it has reported the
// outcome, or Break came first.
func (c *connection) ask(ctx context.Context, cfg hw.ConnectConfig, revision int) (up bool, err error) {
	conn, err := c.dev.dial(ctx, net.JoinHostPort(cfg.Addr, strconv.FormatUint(cfg.Qual, 10)))
	if err != nil {
		return false, err
	}
	c.dev.tune(conn)
	socket := conn
	conn, err = c.dev.traced(ctx, conn, here)
	if err != nil {
		_ = socket.Close()
		return false, err
	}
	defer func() {
		if up {
			return
		}
		if ctx.Err() != nil {
			c.heard = heardOf(socket)
			resetOnClose(socket)
		}
		_ = conn.Close()
	}()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })
	defer stop()
	if !c.adopt(conn, c.cancel) {
		return false, nil
	}
	own := c.terms()
	req := own.requestFrame(revision, cfg.Private)
	if _, err = conn.Write(req.Append(nil)); err != nil {
		return false, howHungUp(socket, hungUp(err))
	}
	var reply wire.MPAReply
	var first []byte
	err = readFrame(conn, func(b []byte) (err error) {
		reply, _, err = wire.ParseMPAReply(b)
		first = b
		return hasKey(b, mpaReply, err)
	})
	if err != nil {
		return false, howHungUp(socket, answered(first, err))
	}
	if reply.Reject {
		c.rejected(&reply)
		return false, nil
	}
	agreed, rtr, due, err := own.agree(&req, &reply)
	if err != nil {
		c.sendTerminate(conn, err)
		return false, err
	}
	if !stop() {
		return false, ctx.Err() // the time has just run out
	}
	c.send.rtr, c.send.rtrDue = rtr, due
	c.recv.heard = true
	if !agreed.extended { // a peer of this package needs no nudge
		c.recv.nudgeAfter = c.dev.set.nudge
	}
	if !c.start(agreed) {
		return false, nil
	}
	if due {
		c.kick(byReceiver) // before the report, which may take longer than the peer waits
	}
	c.establish(append([]byte(nil), reply.Private...))
	return true, nil
}

// resetOnClose makes the close of an attempt that was given up a reset: to a peer that awaits
// no promised FPDU, the orderly end of the stream would mean that the connection was up.
func resetOnClose(conn net.Conn) {
	if l, ok := conn.(interface{ SetLinger(sec int) error }); ok {
		_ = l.SetLinger(0)
	}
}

// readFrame reads a frame of the start-up, and no octet of the FPDU that may follow it.
func readFrame(conn io.Reader, parse func([]byte) error) error {
	b := make([]byte, 0, wire.MaxMPASize)
	for {
		n, err := conn.Read(b[len(b):wire.MPAFrameSize(b)])
		b = b[:len(b)+n]
		if n == 0 && err != nil {
			if len(b) == 0 {
				return hungUp(err)
			}
			return err
		}
		if err = parse(b); err != wire.ErrIncomplete {
			return err
		}
	}
}

// hungUp marks an error by which a peer may refuse this end's revision of MPA.
func hungUp(err error) error {
	if isTimeout(err) {
		return err
	}
	return errors.Join(errHungUp, err)
}

// rejected reports a reject: as the program's, unless it has a provider's mark.
func (c *connection) rejected(reply *wire.MPAReply) {
	if reject.IsByProvider(reply.Private) {
		c.refuse(hw.ReasonRejected, nil, rejection("the peer's provider refused: no room, or closing"))
		return
	}
	c.refuse(hw.ReasonPeerRejected, append([]byte(nil), reply.Private...), rejection("the peer's program rejected the request"))
}

// sendTerminate sends the Terminate that an error of the start-up calls for, if any.
func (c *connection) sendTerminate(conn net.Conn, err error) {
	var e *wire.Error
	if errors.As(err, &e) && !e.Close {
		_ = conn.SetWriteDeadline(time.Now().Add(c.dev.set.linger))
		_, _ = conn.Write(wire.AppendFPDU(nil, c.dev.set.crc, terminate(e.Term, nil, 0)))
	}
}

// reasonOf is the reason of an attempt that failed.
func reasonOf(ctx context.Context, err error) hw.Reason {
	var dns *net.DNSError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return hw.ReasonTimeout
	case errors.As(err, &dns):
		return hw.ReasonUnreachable
	case isTimeout(err):
		return hw.ReasonTimeout
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, errHungUp), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return hw.ReasonRejected
	}
	var e *wire.Error
	if errors.As(err, &e) {
		return hw.ReasonRejected
	}
	return hw.ReasonUnreachable
}

// start opens the connection for FPDUs. It returns false if Break came first.
func (c *connection) start(a agreement) bool {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if c.Dead {
		return false
	}
	c.agreed, c.ops = a, offered&^notSendable
	if a.extended {
		c.ops |= extended &^ notSendable
	}
	c.haul = haulFor(c.dev.procs, paced(tcpUnder(c.conn)))
	c.send.out.most = c.haul.write
	c.send.port.open(c.conn, c.dev.provider.owns)
	c.recv.pulseAfter = c.pulse()
	c.reads.init(a.readsOut + 1)
	c.answers.init(a.readsIn)
	c.rxDone = make(chan struct{})
	_ = c.conn.SetDeadline(time.Time{})
	c.begun = true
	c.attention.And(^uint32(idleRecv))
	c.dev.running.Add(1) // for the writer, which runs for its last job in any case
	return true
}
