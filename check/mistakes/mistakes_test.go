package mistakes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// mistake is one that a newcomer makes, and what its error must say.
type mistake struct {
	name string
	seen string // what the library saw, as the error says it
	todo string // what the newcomer is to do: the call or the option
	is   error  // what the error matches
	make func(*desk) error
}

const (
	patience = time.Minute
	longest  = 500 // bytes of an error that somebody still reads
)

// providers are those on which each mistake is made: a mistake must not be answered on one alone.
var providers = map[string]string{"loop": "", "iwarp:127.0.0.1": "127.0.0.1:0"}

// desk is where a newcomer works: an adapter, a listener and a connection with both ends.
type desk struct {
	*testing.T
	ctx            context.Context
	name, at       string // the provider's name, and an address to listen at
	ia             *dat.IA
	ln             *dat.Listener
	client, server *dat.Conn
}

func newDesk(t *testing.T, name, at string, cfg dat.ConnConfig) *desk {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	d := &desk{T: t, ctx: ctx, name: name, at: at, ia: open(t, name)}
	d.listen(cfg)
	return d
}

// open opens an adapter that the test closes.
func open(t *testing.T, name string, options ...dat.Option) *dat.IA {
	t.Helper()
	ia := must(dat.Open(t.Context(), name, options...))
	t.Cleanup(func() { _ = ia.Close() })
	return ia
}

// listen makes the desk's connection anew, with settings.
func (d *desk) listen(cfg dat.ConnConfig) {
	d.Helper()
	var err error
	d.ln, err = d.ia.Listen(d.ctx, d.at, cfg)
	require.NoError(d, err)
	accepted := make(chan *dat.Conn, 1)
	go func() {
		c, err := d.ln.Accept(ep.RequestOf(<-d.ln.Requests()), nil)
		assert.NoError(d, err)
		accepted <- c
	}()
	d.client, err = d.ia.Dial(d.ctx, d.ln.Addr(), cfg)
	require.NoError(d, err)
	d.server = <-accepted
	require.Equal(d, event.Established, d.next(d.server.Events()).Number)
}

// next is the next event of a channel.
func (d *desk) next(events <-chan event.Event) event.Event {
	d.Helper()
	select {
	case ev := <-events:
		return ev
	case <-d.ctx.Done():
		require.FailNow(d, "no event")
		return event.Event{}
	}
}

// end is the error of the event that ends a connection.
func (d *desk) end(c *dat.Conn) error {
	d.Helper()
	for {
		if ev := d.next(c.Events()); ev.Ended() && dat.ConnOf(ev) == c {
			return ev.Err()
		}
	}
}

// must is for what is no mistake.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// region is memory of the client's zone.
func (d *desk) region(size int, privileges hw.Privileges) *mem.LMR {
	d.Helper()
	r := must(d.client.Alloc(size, privileges))
	return r
}

// said is the error of a call, or what it panics with: some mistakes end the goroutine that makes
// them.
func said(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &panicked{fmt.Sprint(r)}
		}
	}()
	return f()
}

// panicked is what a panic said.
type panicked struct{ text string }

func (p *panicked) Error() string     { return p.text }
func (p *panicked) Is(err error) bool { return err == errPanic }

var errPanic = errors.New("a panic")

func TestEachMistakeIsAnsweredByWhatToDo(t *testing.T) {
	for name, at := range providers {
		provider, _, _ := strings.Cut(name, ":")
		t.Run(provider, func(t *testing.T) {
			for _, m := range table {
				t.Run(m.name, func(t *testing.T) { m.judge(t, newDesk(t, name, at, dat.ConnConfig{Depth: 4, Message: 64})) })
			}
		})
	}
	for _, m := range ofTCP {
		t.Run(m.name, func(t *testing.T) { m.judge(t, newDesk(t, "iwarp:127.0.0.1", "127.0.0.1:0", dat.ConnConfig{})) })
	}
}

// judge makes a mistake, and looks at what it is answered with.
func (m *mistake) judge(t *testing.T, d *desk) {
	err := said(func() error { return m.make(d) })
	require.Error(t, err)
	t.Log(err)
	text, _, _ := strings.Cut(err.Error(), "\n") // behind that are the calls, with Debug
	assert.Contains(t, text, m.seen, "what was seen")
	assert.Contains(t, text, m.todo, "what to do")
	assert.NotContains(t, m.seen, m.todo, "the row asks for one thing twice")
	assert.NotContains(t, m.todo, m.seen, "the row asks for one thing twice")
	assert.ErrorIs(t, err, m.is)
	assert.LessOrEqual(t, len(text), longest)
	if e, is := errors.AsType[*hw.Error](err); is {
		assert.NotEmpty(t, e.Op, "the call that failed")
	}
}
