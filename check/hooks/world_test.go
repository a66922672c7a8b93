package hooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/hw/iwarp"
	dat "godat/runtime"
	"godat/runtime/rpc"
)

const (
	// bound is how long a call may take that waits for nobody but this process.
	bound = 20 * time.Second
	// short bounds attempts of which the function keeps the answer.
	short = 2 * time.Second
)

var (
	errHangs = errors.New("the call has not returned")
	errExit  = errors.New("the call ended its goroutine")
)

// world is an adapter with a neighbor that must not notice what a function of the program's does, and
// all that is said of it.
type world struct {
	t    *testing.T
	ia   *dat.IA
	log  *slog.Logger // into text
	deed deed

	begun chan struct{} // closed when the deed begins
	done  chan struct{} // closed when the deed has been done
	over  chan struct{} // closed when whatever blocks may end
	armed atomic.Bool   // the neighbors have settled
	once  sync.Once
	all   sync.WaitGroup // goroutines of the program

	mu     sync.Mutex
	text   bytes.Buffer
	shut   bool // the deed has closed what it belongs to
	closed bool // the deed has closed the adapter

	neighbor *dat.Listener
	near     *dat.Conn
	client   atomic.Pointer[rpc.Client] // of the first use
}

// deed is what a function of the program's does, given the means to close what it belongs to.
type deed struct {
	name string
	do   func(w *world, closers []func() error)
}

var deeds = []deed{
	{"panics", func(w *world, _ []func() error) { panic(mark) }},
	{"ends its goroutine", func(*world, []func() error) { goruntime.Goexit() }},
	{"closes what it belongs to", func(w *world, closers []func() error) {
		for _, closer := range closers {
			err := closer()
			w.say("closed", err)
			w.mu.Lock()
			w.shut = w.shut || err == nil
			w.mu.Unlock()
		}
	}},
	{"closes the adapter", func(w *world, _ []func() error) {
		err := w.ia.Close()
		w.say("adapter closed", err)
		w.mu.Lock()
		w.closed = err == nil
		w.mu.Unlock()
	}},
	{"blocks", func(w *world, _ []func() error) { <-w.over }},
}

// mark is what a function panics with.
const mark = "the program's own mistake"

func newWorld(t *testing.T, name string, d deed, config func(w *world) iwarp.Config) *world {
	w := &world{t: t, deed: d, begun: make(chan struct{}), done: make(chan struct{}), over: make(chan struct{})}
	w.log = slog.New(slog.NewTextHandler(writer{w}, nil))
	opts := []dat.Option{dat.WithSlog(w.log)}
	if config != nil {
		opts = append(opts, dat.WithProvider(iwarp.New(config(w))))
	}
	ia, err := dat.Open(context.Background(), name, opts...)
	require.NoError(t, err)
	w.ia = ia
	w.settle()
	w.armed.Store(true)
	return w
}

// writer is where the log goes.
type writer struct{ w *world }

func (l writer) Write(b []byte) (int, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return l.w.text.Write(b)
}

// act is the first call of the function that is under test; later ones do nothing.
func (w *world) act(closers ...func() error) {
	first := false
	if w.armed.Load() {
		w.once.Do(func() { first = true })
	}
	if !first {
		return
	}
	close(w.begun)
	defer close(w.done)
	w.deed.do(w, closers)
}

// say notes what the program has learned.
func (w *world) say(what string, err error) {
	if err == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintln(&w.text, what+":", err)
}

// said is all that errors and logs have said.
func (w *world) said() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// try makes a call in a goroutine of its own, and waits for it. A panic is an error.
func (w *world) try(what string, call func() error) error {
	result := make(chan error, 1)
	w.spawn(what, func() error {
		err := errExit
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("panicked: %v", v)
			}
			result <- err
		}()
		err = call()
		return nil
	})
	select {
	case err := <-result:
		w.say(what, err)
		return err
	case <-time.After(bound):
		return errHangs
	}
}

// spawn is a goroutine of the program's, whose end is noted, however it comes.
func (w *world) spawn(what string, f func() error) {
	w.all.Go(func() {
		err := errExit
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("panicked: %v", v)
			}
			w.say(what, err)
		}()
		err = f()
	})
}

// settle makes the neighbors, who talk.
func (w *world) settle() {
	w.neighbor = w.echo(dat.ConnConfig{})
	var err error
	w.near, err = w.ia.Dial(context.Background(), w.neighbor.Addr(), dat.ConnConfig{})
	require.NoError(w.t, err)
	require.NoError(w.t, w.chat(w.near))
}

// echo is a listener whose connections answer each message with itself. It ends with the listener.
func (w *world) echo(cfg dat.ConnConfig) *dat.Listener {
	ln, err := w.ia.Listen(context.Background(), "127.0.0.1:0", cfg)
	if err != nil { // of a provider with other names
		ln, err = w.ia.Listen(context.Background(), "", cfg)
	}
	require.NoError(w.t, err)
	w.spawn("requests", func() error {
		for ev := range ln.Requests() {
			if ev.Number == event.Closed {
				break
			}
			w.spawn("accept", func() error {
				_, err := ln.Accept(ep.RequestOf(ev), nil)
				return err
			})
		}
		return nil
	})
	if cfg.Apart {
		return ln
	}
	w.spawn("events", func() error {
		for ev := range ln.Events() {
			c := dat.ConnOf(ev)
			switch {
			case ev.Number == event.Closed:
				return nil
			case ev.Ended():
				w.spawn("close", c.Close)
			case ev.Op == hw.OpRecv:
				if b := c.Message(ev); b != nil {
					_ = c.Send(b)
				}
			}
		}
		return nil
	})
	return ln
}

// chat sends a message over a connection and gets it back.
func (w *world) chat(c *dat.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), bound/2)
	defer cancel()
	if err := c.SendBytes([]byte("hello")); err != nil {
		return err
	}
	for {
		var ev event.Event
		select {
		case ev = <-c.Events():
		case <-ctx.Done():
			return errHangs
		}
		switch {
		case ev.Number == event.Closed || ev.Ended():
			return fmt.Errorf("the connection has ended: %w", ev.Err())
		case ev.Op == hw.OpRecv:
			b := c.Message(ev)
			defer c.Release(b)
			if string(b.Bytes()) != "hello" {
				return fmt.Errorf("another message came: %q", b.Bytes())
			}
			return nil
		}
	}
}

// talk dials, talks and closes.
func (w *world) talk(address string, cfg dat.ConnConfig) error {
	ctx, cancel := context.WithTimeout(context.Background(), bound/2)
	defer cancel()
	c, err := w.ia.Dial(ctx, address, cfg)
	if err != nil {
		return err
	}
	return errors.Join(w.chat(c), c.Close())
}

// end waits for the goroutines of the program.
func (w *world) end() {
	ended := make(chan struct{})
	go func() {
		w.all.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(bound):
		stacks := make([]byte, 1<<20)
		require.Fail(w.t, "goroutines of the program wait for ever", string(stacks[:goruntime.Stack(stacks, true)]))
	}
}

// judge says what must hold, whatever the deed was. use makes the library call the function, closing
// closes what it belongs to; it waits for the function if waits is set.
func (w *world) judge(use, closing func() error, waits bool) {
	t, blocks := w.t, w.deed.name == "blocks"
	used := make(chan error, 1)
	w.spawn("use", func() error { used <- w.try("use", use); return nil })
	select {
	case <-w.begun:
	case <-time.After(bound):
		require.Fail(t, "the function was not called", w.said())
	}
	if !blocks { // a caller may wait for a function that runs in the caller's own goroutine
		assert.NotEqual(t, errHangs, <-used, "the first use")
		select {
		case <-w.done:
		case <-time.After(bound):
			assert.Fail(t, "what the function calls has not returned")
		}
	}
	w.mu.Lock()
	shut, closed := w.shut, w.closed
	w.mu.Unlock()
	if !closed {
		assert.NoError(t, w.try("chat", func() error { return w.chat(w.near) }), "a neighbor's connection")
		assert.NoError(t, w.try("talk", func() error { return w.talk(w.neighbor.Addr(), dat.ConnConfig{}) }), "a new connection of the neighbor's")
	}
	again := w.try("use again", use)
	if !closed && !shut {
		assert.NoError(t, again, "the same once more\n%s", w.said())
	}
	assert.NotEqual(t, errHangs, again, "the same once more")

	err := w.try("close", closing)
	assert.NotEqual(t, errHangs, err, "close of what the function belongs to")
	first := w.try("IA.Close", w.ia.Close)
	assert.NotEqual(t, errHangs, first, "IA.Close")
	if first != nil {
		assert.True(t, blocks && strings.Contains(first.Error(), "has not returned"), "IA.Close: %v", first)
	}
	close(w.over)
	_ = w.try("close", closing)
	assert.NoError(t, w.try("IA.Close", w.ia.Close))
	w.end()
	switch w.deed.name {
	case "blocks":
		assert.Equal(t, waits, strings.Contains(w.said(), "has not returned"), w.said())
	case "panics":
		assert.Contains(t, w.said(), mark)
	case "ends its goroutine":
		assert.Contains(t, w.said(), "ended its goroutine")
	}
}
