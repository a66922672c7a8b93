package rpc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"runtime/trace"
	"sync"

	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

const opCall = "rpc.Client.Call"

// Client makes calls over a connection, or with Config.Redial over one connection after
// another. Its methods may be called from any goroutine.
type Client struct {
	// Immutable.
	ia      *dat.IA
	address string
	cfg     Config
	closePZ func() error
	loans   loans           // of calls with bytes
	life    context.Context // ends with Close
	end     context.CancelFunc
	done    chan struct{}  // closed when redial has ended
	leaving sync.WaitGroup // sessions beside now, of servers that are being shut down; redial adds
	unlist  []func()       // end the reports of the adapter
	ending  ending

	answered answered // the readers of the sessions add
	methods  methods
	ends     endCounts
	lately   lately
	waits    waits // of callers
	journal  journal

	leaveTotals func()

	mu         sync.Mutex
	now        *session
	next       chan struct{} // closed when another session takes the place of now, or none ever will
	failed     error         // why the last attempt to connect failed
	attempts   int           // that have failed since there was a connection
	over       bool          // no session comes any more
	reconnects uint64
}

// Call is what a client asks for.
type Call struct {
	Method  uint16 // a number that the server knows
	Payload []byte // goes inside the message
	// Source is memory of [Client.PZ] with RemoteRead that the server may read while the call
	// is under way, and Sink is memory with RemoteWrite that it may write. A Len of 0 is none.
	// How much the server has written is in Written. A call whose context ends while the server moves
	// its memory returns up to Config.Patience later, and on a slow link when what is under way has come.
	Source, Sink mem.RemoteSegment
	// SourceBytes and SinkBytes are memory that is not registered, in place of Source and Sink:
	// Call registers it for as long as it runs. On a verbs device that takes microseconds and pins
	// the pages; register once what many calls use. Each may have up to 4 GiB less a byte; more is
	// LENGTH_ERROR.
	//
	// SourceBytes may be mapped for reading alone. A verbs device may refuse such memory if the
	// mapping is shared, as those of Linux 6.1 do; it takes MAP_PRIVATE. SinkBytes that can't be
	// written are INVALID_PARAMETER on Linux. If a mapped file is cut while the call is under
	// way, the fault ends the process.
	SourceBytes, SinkBytes []byte
	// Written, if it is not nil, gets how far the server says that it has written into Sink or
	// SinkBytes: the end of the furthest of its writes that succeeded. Without an answer it gets 0,
	// though bytes may have been written.
	Written *int
	// Idempotent says that the call does no harm if it runs twice. A client with Config.Redial
	// makes it again on its next connection even if it may have run.
	Idempotent bool

	metadata []byte // of the call's context, encoded
	flags    byte   // flagLater or flagFetch
}

// CallFunc makes a call, as [Client.Call] does: what Config.AroundCall runs around.
type CallFunc func(ctx context.Context, call Call) (answer []byte, err error)

// Dial connects to a [Server]. It makes one attempt, or with Config.Await as many as it takes; ctx
// bounds them. If the server refuses the connection, the error matches an [Error] with CodeFull or
// CodeDraining. A server that does not speak this package's protocol is an error, too.
func Dial(ctx context.Context, ia *dat.IA, address string, cfg Config) (*Client, error) {
	if err := openFor("rpc.Dial", ia); err != nil {
		return nil, err
	}
	if err := cfg.complete("rpc.Dial", ia.Attr()); err != nil {
		return nil, err
	}
	c := &Client{ia: ia, address: address, done: make(chan struct{}), next: make(chan struct{})}
	c.methods.init(cfg.Methods)
	c.journal.log = cfg.Log
	c.lately.begin()
	c.life, c.end = context.WithCancel(context.Background())
	var err error
	if c.closePZ, err = cfg.makePZ("rpc.Dial", ia); err != nil {
		return nil, err
	}
	c.cfg = cfg
	if cfg.Await {
		c.now, err = c.connect(ctx, c.cfg.newPauses())
	} else {
		c.now, err = c.newSession(ctx)
	}
	if err != nil {
		c.end()
		c.journal.flush()
		return nil, errors.Join(err, c.closePZ())
	}
	if err = c.list(); err != nil {
		c.end()
		c.journal.flush()
		return nil, errors.Join(err, c.now.close(), c.closePZ())
	}
	if cfg.Redial == 0 {
		close(c.done)
	} else {
		go c.redial()
	}
	return c, nil
}

// PZ is the zone in which memory of calls is registered. It stays when the client connects
// anew, and so does the memory. It is nil for a nil client.
func (c *Client) PZ() *mem.PZ {
	if c == nil {
		return nil
	}
	return c.cfg.PZ
}

// Call makes a call, waits for its answer, and appends the answer's payload to dst. A failure
// that the server answered is an [Error]; without an answer the error is a [CallError]. A
// payload of more bytes than both ends take is LENGTH_ERROR, a nil ctx INVALID_PARAMETER.
//
// The metadata of ctx goes with the call: see [WithMetadata].
//
// The payload is the caller's when Call returns, and so is the memory of Source and Sink,
// whatever the error. When ctx ends while the server may still use that memory, Call waits for
// the answer, and breaks the connection if none comes within Config.Patience and nothing moves.
//
// With Config.Redial a call that has certainly not run waits for the next connection, and so
// does one that may have run if it is Idempotent. Others fail when their connection ends.
func (c *Client) Call(ctx context.Context, call Call, dst []byte) ([]byte, error) {
	if c == nil || c.ia == nil {
		return dst, notMade(opCall, "Client", "Dial")
	}
	if c.cfg.AroundCall != nil && ctx != nil {
		return c.callAround(ctx, call, dst)
	}
	return c.countCall(ctx, call, dst)
}

// callAround is countCall within Config.AroundCall.
func (c *Client) callAround(ctx context.Context, call Call, dst []byte) ([]byte, error) {
	return c.cfg.AroundCall(ctx, call, func(ctx context.Context, call Call) ([]byte, error) { return c.countCall(ctx, call, dst) })
}

// makeCall is Call without Config.AroundCall.
func (c *Client) makeCall(ctx context.Context, call Call, dst []byte) (_ []byte, err error) {
	if ctx == nil {
		return dst, hw.Errorf(opCall, hw.InvalidParameter, hw.Arg1, "a nil context")
	}
	if call.metadata, err = encodedMetadata(ctx); err != nil {
		return dst, err
	}
	if call.Written != nil {
		*call.Written = 0
	}
	for _, named := range []mem.RemoteSegment{call.Source, call.Sink} {
		if named.Addr+uint64(named.Len) < named.Addr { // what LMR.Remote makes of a range that is not within its region
			return dst, hw.Errorf(opCall, hw.LengthError, hw.NoSubtype, "Source or Sink names a range that was not within its region")
		}
	}
	if call.SourceBytes != nil || call.SinkBytes != nil {
		return c.callWithBytes(ctx, call, dst)
	}
	if trace.IsEnabled() {
		var task *trace.Task
		ctx, task = trace.NewTask(ctx, "rpc.Call")
		defer task.End()
	}
	mayHaveRun, runs := false, 0 // on earlier connections
	for {
		s, err := c.session(ctx)
		if err != nil {
			return dst, &CallError{mayHaveRun, err}
		}
		got, err := c.callOver(ctx, s, &call, dst)
		if err == nil {
			return got, nil
		}
		failed, ok := errors.AsType[*CallError](err)
		if !ok {
			return got, err
		}
		if failed.MayHaveRun {
			runs++
		}
		failed.MayHaveRun = failed.MayHaveRun || mayHaveRun
		mayHaveRun = failed.MayHaveRun
		if runs == mostRuns {
			failed.Err = fmt.Errorf("%d connections have ended under it, the last one so: %w", runs, failed.Err)
			return got, err
		}
		if c.cfg.Redial == 0 || !s.mayRepeat(ctx, &call, failed) {
			if cause := context.Cause(ctx); c.cfg.Redial != 0 && cause != nil && !errors.Is(failed, cause) {
				failed.Err = fmt.Errorf("%w; before that: %s", cause, failed.Err)
			}
			return got, err
		}
	}
}

// callWithBytes is Call with memory that is registered for its time.
func (c *Client) callWithBytes(ctx context.Context, call Call, dst []byte) (got []byte, err error) {
	source, sink := call.SourceBytes, call.SinkBytes
	call.SourceBytes, call.SinkBytes = nil, nil
	if len(source) > 0 && call.Source.Len > 0 || len(sink) > 0 && call.Sink.Len > 0 {
		return dst, hw.Errorf(opCall, hw.InvalidParameter, hw.Arg2, "memory given twice: by Source and SourceBytes, or by Sink and SinkBytes")
	}
	got = dst
	if err := mayName(uint64(len(source)), uint64(len(sink))); err != nil {
		return dst, err
	}
	err = c.loans.lend(c.cfg.PZ, source, hw.LocalRead|hw.RemoteRead, func(out *mem.LMR) error {
		if out != nil {
			call.Source = out.Remote(0, len(source))
		}
		return c.loans.lend(c.cfg.PZ, sink, hw.LocalWrite|hw.RemoteWrite, func(in *mem.LMR) (err error) {
			if in != nil {
				call.Sink = in.Remote(0, len(sink))
			}
			got, err = c.makeCall(ctx, call, dst)
			return err
		})
	})
	if err == ErrEnded { //nolint:errorlint // of lend: the call was not made
		err = &CallError{Err: ended(errClosed)}
	}
	return got, err
}

// mayName checks that a call has words for so many bytes: a [mem.RemoteSegment] has 32 bits.
func mayName(source, sink uint64) error {
	if most := uint64(math.MaxUint32); source > most || sink > most {
		return hw.Errorf(opCall, hw.LengthError, hw.NoSubtype, "%d bytes of SourceBytes and %d of SinkBytes; a call names up to %d", source, sink, most)
	}
	return nil
}

// mostRuns is how often a call is made that may have run each time.
const mostRuns = 10

// mayRepeat reports whether a call that failed by its connection's end, or because its server begins no
// calls any more, is made again on the next connection. It waits until this one is over.
func (s *session) mayRepeat(ctx context.Context, call *Call, failed *CallError) bool {
	if failed.MayHaveRun && !call.Idempotent || ctx.Err() != nil {
		return false
	}
	if !errors.Is(failed, ErrEnded) && !errors.Is(failed, &Error{Code: CodeDraining}) {
		return false
	}
	select {
	case <-s.ended:
		return true
	case <-s.drains:
		return true
	case <-ctx.Done():
		return false
	}
}

// session returns the connection's, for which it waits while the client connects anew.
func (c *Client) session(ctx context.Context) (*session, error) {
	for {
		c.mu.Lock()
		s, next, over, failed := c.now, c.next, c.over, c.failed
		c.mu.Unlock()
		if c.cfg.Redial == 0 || !s.isOver() {
			return s, nil
		}
		if over {
			return nil, ended(failed)
		}
		one := c.waits.begin()
		select {
		case <-next:
			c.lately.waited(c.waits.end(one))
		case <-ctx.Done():
			c.lately.waited(c.waits.end(one))
			return nil, fmt.Errorf("%w, while there is no connection to %s: %w", context.Cause(ctx), c.address, c.why(s))
		}
	}
}

// current is the last session that there was.
func (c *Client) current() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *Client) why(s *session) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.failed != nil:
		return c.failed
	case !s.hasEnded() && s.isOver():
		return errDrains
	}
	return s.reason()
}

// Close ends the connection. Calls under way fail, and so do calls that wait for a
// connection. Closing again does nothing. While memory of PZ is not freed, the error is
// INVALID_STATE/PZ_IN_USE; then Close may be called again. Memory of SourceBytes and SinkBytes
// is not the program's to free: Close waits for those calls. A nil client is INVALID_HANDLE.
func (c *Client) Close() error {
	if c == nil || c.ia == nil {
		return notMade("rpc.Client.Close", "Client", "Dial")
	}
	defer func() { // behind all that Close may wait for: until then the page says what that is
		for _, end := range c.unlist {
			end()
		}
	}()
	c.ending.begin()
	c.end()
	err := c.current().close() // which ends the calls
	<-c.done
	c.leaving.Wait()
	c.journal.flush()
	err = errors.Join(err, c.current().close()) // that of redial, which may have been connecting
	c.loans.end()
	c.leaveTotals()
	return errors.Join(err, c.closePZ())
}

// errDrains is why a client has no connection for calls while its server is being shut down.
var errDrains = errors.New(refusals[CodeDraining])

// errLeft is why a connection has ended whose server did not say that it is shut down.
var errLeft = errors.New("the server ended it; if it broke it, its Config.Log says why")

// errAdapterClosed is why a connection has ended that nobody ended before.
var errAdapterClosed = fmt.Errorf("the adapter is closed: %w", net.ErrClosed)

// errClosed is why calls of a client that was closed fail.
var errClosed = fmt.Errorf("the client is closed: %w", net.ErrClosed)
