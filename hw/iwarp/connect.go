package iwarp

import (
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
	"godat/hw/internal/soft"
	"godat/hw/iwarp/wire"
)

// Connect starts the attempt. cfg.Timeout bounds it; without, a peer's consumer
// may take any time to answer.
func (q *queuePair) Connect(cfg hw.ConnectConfig) error {
	const op = "iwarp.Connect"
	l := q.life
	switch {
	case l == nil:
		return gone(op)
	case len(cfg.Private) > q.dev.set.private:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "%d bytes of private data, of %d", len(cfg.Private), q.dev.set.private)
	case cfg.Qual > hw.MaxQual:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "connection qualifier %d is no TCP port", cfg.Qual)
	}
	if err := l.attempt(op); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	if cfg.Timeout > 0 {
		ctx, cancel = context.WithTimeout(context.Background(), cfg.Timeout)
	}
	if !l.hold(nil, cancel) {
		cancel()
		return hw.Errorf(op, hw.InvalidState, hw.StateEPDisconnected, "the queue pair is broken")
	}
	cfg.Private = slices.Clone(cfg.Private)
	q.dev.running.Add(1)
	go l.initiate(ctx, cancel, cfg)
	return nil
}

// initiate is the goroutine of a connection that we ask for: it becomes the
// receiver.
func (l *life) initiate(ctx context.Context, cancel context.CancelFunc, cfg hw.ConnectConfig) {
	defer l.dev.running.Done()
	defer cancel()
	l.qp.vacant()
	revision := l.dev.set.revision
	up, err := l.ask(ctx, cfg, revision)
	if errors.Is(err, errHungUp) && revision == wire.MPARevision2 && l.dev.set.fallback {
		up, err = l.ask(ctx, cfg, wire.MPARevision1)
	}
	if err == nil && up {
		l.receive()
		return
	}
	if err != nil {
		l.refuse(reasonOf(ctx, err), nil, attemptCause(err))
	}
}

// errHungUp says that the peer closed the connection before it answered.
var errHungUp = errors.New("iwarp: the peer hung up")

// ask makes one attempt. up says that the connection is; without an error and it
// the outcome has been told.
func (l *life) ask(ctx context.Context, cfg hw.ConnectConfig, revision int) (up bool, err error) {
	conn, err := l.dev.provider.cfg.Dial(ctx, net.JoinHostPort(cfg.Addr, strconv.FormatUint(cfg.Qual, 10)))
	if err != nil {
		return false, err
	}
	l.dev.tune(conn)
	conn = l.dev.traced(conn)
	defer func() {
		if !up {
			_ = conn.Close()
		}
	}()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })
	defer stop()
	if !l.hold(conn, l.cancel) {
		return false, nil
	}
	req := l.request(revision, cfg.Private)
	if _, err = conn.Write(req.Append(nil)); err != nil {
		return false, hungUp(err)
	}
	var reply wire.MPAReply
	err = readFrame(conn, func(b []byte) (err error) {
		reply, _, err = wire.ParseMPAReply(b)
		return err
	})
	if err != nil {
		return false, err
	}
	if reply.Reject {
		l.rejected(&reply)
		return false, nil
	}
	agreed, rtr, due, err := l.agree(&req, &reply)
	if err != nil {
		l.protest(conn, err)
		return false, err
	}
	if !stop() {
		return false, ctx.Err() // time was up in the last moment
	}
	l.tx.rtr, l.tx.rtrDue = rtr, due
	l.rx.heard = true
	if !agreed.extended { // or it is one of ours
		l.rx.nudge = l.dev.set.nudge
	}
	info := hw.ConnInfo{
		Local: conn.LocalAddr(), Remote: conn.RemoteAddr(),
		ReadsIn: agreed.readsIn, ReadsOut: agreed.readsOut, Private: slices.Clone(reply.Private),
	}
	return l.start(agreed) && l.establish(info), nil
}

// readFrame reads a frame of the start-up and no octet more: the peer's first
// FPDU may be right behind.
func readFrame(conn net.Conn, parse func([]byte) error) error {
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

// hungUp marks an error that a peer of another revision may cause.
func hungUp(err error) error {
	if isTimeout(err) {
		return err
	}
	return errors.Join(errHungUp, err)
}

// rejected tells of a reject: the consumer's, unless it has a provider's mark.
func (l *life) rejected(reply *wire.MPAReply) {
	if reject.IsByProvider(reply.Private) {
		l.refuse(hw.ReasonRejected, nil, rejection("the peer's provider refused: no room, or closing"))
		return
	}
	l.refuse(hw.ReasonPeerRejected, slices.Clone(reply.Private), rejection("the peer's program rejected the request"))
}

// protest sends the Terminate that a reply calls for, if any.
func (l *life) protest(conn net.Conn, err error) {
	var e *wire.Error
	if errors.As(err, &e) && !e.Close {
		_ = conn.SetWriteDeadline(time.Now().Add(l.dev.set.linger))
		_, _ = conn.Write(wire.AppendFPDU(nil, l.dev.set.crc, terminate(e.Term, nil, 0)))
	}
}

// reasonOf is the reason for which an attempt failed.
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

// start makes the connection work; false if Break came first.
func (l *life) start(a agreement) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return false
	}
	l.agreed = a
	l.port = openPort(l.conn)
	l.port.bind()
	l.rx.pulse = l.pulse()
	n := soft.RingLen(a.readsOut + 1)
	l.reads.slots, l.reads.mask = make([]read, n), uint64(n-1)
	n = soft.RingLen(a.readsIn + 2)
	l.answers.slots, l.answers.mask = make([]response, n), uint64(n-1)
	l.answers.limit = uint64(max(a.readsIn, 1)) // a ready-to-receive may be a read
	l.rxDone = make(chan struct{})
	l.job.told = true
	_ = l.conn.SetDeadline(time.Time{})
	l.begun = true
	l.attention.And(^uint32(idleRecv))
	l.dev.addLife(l)
	l.dev.running.Add(1) // the sender, which has its last job in any case
	return true
}

// establish tells that the connection is up. Whatever ended it meanwhile is for
// the receiver to find out, which runs in any case.
func (l *life) establish(info hw.ConnInfo) bool {
	l.tell(connected, func() {
		l.up.Store(true)
		l.facts.Established(info)
	})
	return true
}
