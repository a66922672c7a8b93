package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	dat "godat/runtime"
	"godat/runtime/rpc"
)

// overloadCalls is how many calls a client has under way, so that calls wait at the server.
const overloadCalls = 256

// overloadWork is the method of the calls that are measured, overloadCount that of their count.
const (
	overloadWork = 1 + iota
	overloadCount
)

// overloadServer is a server of handlers that sleep.
type overloadServer struct {
	server *rpc.Server
	served chan error
	stop   context.CancelFunc
	handle time.Duration
	begun  atomic.Int64
}

func (o *overloadCommand) newServer(ia *dat.IA) (*overloadServer, error) {
	ctx, stop := context.WithCancel(context.Background())
	s := &overloadServer{served: make(chan error, 1), stop: stop, handle: o.Handler}
	var err error
	if s.server, err = rpc.Listen(ctx, ia, ":0", rpc.Config{Calls: overloadCalls}); err != nil {
		stop()
		return nil, err
	}
	go s.serve(ctx, o.Workers)
	return s, nil
}

func (s *overloadServer) serve(ctx context.Context, workers int) {
	s.served <- s.server.Serve(ctx, workers, func(r *rpc.Request) ([]byte, error) {
		if r.Method() == overloadCount {
			return strconv.AppendInt(nil, s.begun.Load(), 10), nil
		}
		s.begun.Add(1)
		time.Sleep(s.handle)
		return nil, nil
	})
}

func (s *overloadServer) end() error {
	s.stop()
	return <-s.served
}

// serve is the process of the server: it says its address, and ends with its input.
func (o *overloadCommand) serve(in io.Reader, out io.Writer) error {
	ia, err := dat.Open(context.Background(), o.IA)
	if err != nil {
		return err
	}
	s, err := o.newServer(ia)
	if err != nil {
		return errors.Join(err, ia.Close())
	}
	fmt.Fprintln(out, s.server.Addr())
	_, err = io.Copy(io.Discard, in)
	return errors.Join(err, s.end(), ia.Close())
}

// overloadFar is the server, in this process or another.
type overloadFar struct {
	ia      *dat.IA // of this process
	address string
	here    *overloadServer // in this process; nil if it is in another
	process *exec.Cmd
	stdin   io.Closer
}

func (f *overloadFar) processes() int {
	if f.here != nil {
		return 1
	}
	return 2
}

// begin begins the server: in a process of its own, if another process can reach it.
func (o *overloadCommand) begin() (*overloadFar, error) {
	ia, err := dat.Open(context.Background(), o.IA) // first: what can't be opened is said by this process
	if err != nil {
		return nil, err
	}
	f := &overloadFar{ia: ia}
	if name, _, _ := strings.Cut(o.IA, ":"); name == "loop" || name == "sim" {
		if f.here, err = o.newServer(ia); err == nil {
			f.address = f.here.server.Addr()
		}
	} else {
		err = f.start(o)
	}
	if err != nil {
		return nil, errors.Join(err, ia.Close())
	}
	return f, nil
}

// start starts the server's process.
func (f *overloadFar) start(o *overloadCommand) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(program, "overload", "--peer", "--ia", o.IA, "--workers", strconv.Itoa(o.Workers),
		"--handler", o.Handler.String(), "--deadline", o.Deadline.String())
	cmd.Stderr = os.Stderr
	if f.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err = cmd.Start(); err != nil {
		return err
	}
	f.process = cmd
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the server's process has not begun to listen: %w", errors.Join(f.stdin.Close(), cmd.Wait()))
	}
	f.address = strings.TrimSpace(line)
	return nil
}

func (f *overloadFar) end() error {
	if f.here != nil {
		return errors.Join(f.here.end(), f.ia.Close())
	}
	return errors.Join(f.stdin.Close(), f.process.Wait(), f.ia.Close())
}

// overloadCallers are the clients.
type overloadCallers struct{ clients []*rpc.Client }

func (o *overloadCommand) dial(far *overloadFar) (*overloadCallers, error) {
	ctx, cancel := overloadContext()
	defer cancel()
	callers := &overloadCallers{}
	for range o.Clients {
		c, err := rpc.Dial(ctx, far.ia, far.address, rpc.Config{Calls: overloadCalls})
		if err != nil {
			return nil, errors.Join(err, callers.close())
		}
		callers.clients = append(callers.clients, c)
	}
	return callers, nil
}

func (c *overloadCallers) close() (err error) {
	for _, client := range c.clients {
		err = errors.Join(err, client.Close())
	}
	return err
}

// overloadTurn is what has become of the calls of one turn.
type overloadTurn struct {
	lasted  time.Duration
	asked   int64
	begun   int64           // by handlers
	inTime  []time.Duration // until the answer
	refused []time.Duration // until the refusal
	late    int64
	// counted is how many of the answers in time came in the window, which is the turn without its first
	// Deadline: before that the calls of the turn before may still be at the server, and those that wait at the
	// end of the turn are answered behind it.
	counted int64
	window  time.Duration
}

// overloadTally counts the calls of a turn while they end.
type overloadTally struct {
	began time.Time

	mu sync.Mutex
	overloadTurn
	failed error // of a call that ended otherwise
}

// turn makes calls at intended times, whatever becomes of those before, and waits for the last of them.
// Each call has come to one end, and each that was answered has had a handler, or the turn is an error.
func (c *overloadCallers) turn(o *overloadCommand, load float64, lasts time.Duration) (none overloadTurn, err error) {
	before, err := c.begun()
	if err != nil {
		return none, err
	}
	all, rate, began := new(sync.WaitGroup), load*o.capacity(), time.Now()
	result := &overloadTally{began: began, overloadTurn: overloadTurn{lasted: lasts, window: lasts - o.Deadline}}
	for at := time.Duration(0); at < lasts; at = time.Duration(float64(result.asked) / rate * float64(time.Second)) {
		if wait := at - time.Since(began); wait > 0 {
			time.Sleep(wait)
		}
		client := c.clients[result.asked%int64(len(c.clients))]
		result.asked++
		all.Go(func() { result.call(client, o.Deadline) })
	}
	took := time.Since(began)
	all.Wait()
	if err = result.failed; err != nil {
		return none, err
	}
	if took > lasts+max(lasts/10, 50*time.Millisecond) {
		return none, fmt.Errorf("the calls of %v took %v to make: this process could not ask for %g times what the server can do", lasts, took.Round(time.Millisecond), load)
	}
	after, err := c.begun()
	result.begun = after - before
	t := result.overloadTurn
	if ended := int64(len(t.inTime)+len(t.refused)) + t.late; err == nil && (ended != t.asked || t.begun < int64(len(t.inTime)) || t.begun > t.asked) {
		err = fmt.Errorf("%d calls were made, %d ended, %d were answered in time and %d begun", t.asked, ended, len(t.inTime), t.begun)
	}
	return t, err
}

// call makes a call, and counts what became of it.
func (t *overloadTally) call(client *rpc.Client, deadline time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	began := time.Now()
	_, err := client.Call(ctx, rpc.Call{Method: overloadWork}, nil)
	took := time.Since(began)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil && took <= deadline:
		t.inTime = append(t.inTime, took)
		if end := began.Add(took).Sub(t.began); t.lasted-t.window <= end && end < t.lasted {
			t.counted++
		}
	case err == nil || errors.Is(err, context.DeadlineExceeded):
		t.late++
	case errors.Is(err, &rpc.Error{Code: rpc.CodeBusy}):
		t.refused = append(t.refused, took)
	default:
		t.failed = err
	}
}

// begun is how many handlers the server has begun.
func (c *overloadCallers) begun() (int64, error) {
	ctx, cancel := overloadContext()
	defer cancel()
	text, err := c.clients[0].Call(ctx, rpc.Call{Method: overloadCount}, nil)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(text), 10, 64)
}
