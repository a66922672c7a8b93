package runtime

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

var closingPrograms = flag.Int("closing.programs", 300, "random programs of closers to run on loop; a tenth of that on iwarp")

// mayRefuse are the codes that the closing calls document, by what they close; all
// other calls must succeed.
var mayRefuse = map[string][]hw.Subtype{
	"graceful":   {hw.StateIAInUse, hw.HandleIA},
	"endpoint":   {hw.StateEPReserved, hw.StateEPPassiveConnectionPending, hw.StateEPTentativeConnectionPending},
	"dispatcher": {hw.StateEVDInUse, hw.StateEVDWaiter},
	"zone":       {hw.StatePZInUse},
	"SRQ":        {hw.StateSRQInUse},
	"CNO":        {hw.StateCNOInUse},
}

// closer closes one object of a program.
type closer struct {
	kind  string
	close func() error
}

// run closes the object, and returns an error if the answer is wrong.
func (c *closer) run() error {
	err := c.close()
	var code *hw.Error
	if err == nil || errors.As(err, &code) && slices.Contains(mayRefuse[c.kind], code.Sub) {
		return nil
	}
	return fmt.Errorf("%s: %w", c.kind, err)
}

// closingWorld is an adapter with objects of all kinds. A program of closers closes
// them while a peer asks for connections.
type closingWorld struct {
	t        *rapid.T
	ia       *IA
	pz       *mem.PZ
	lmr      *mem.LMR
	events   *evd.Dispatcher // of the endpoints
	listener *Listener
	points   []uint64 // the qualifiers
	answers  []int    // what the program does with each request
	closers  []*closer

	consumers sync.WaitGroup
	answered  atomic.Int32

	mu   sync.Mutex
	errs []error
}

func (w *closingWorld) fail(err error) {
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.errs = append(w.errs, err)
	}
}

func (w *closingWorld) add(kind string, closeIt func() error) {
	w.closers = append(w.closers, &closer{kind, closeIt})
}

// dispatcher makes a dispatcher of a mode that the generator draws, for requests or
// other events.
func (w *closingWorld) dispatcher(cfg evd.Config) *evd.Dispatcher {
	d, err := w.ia.NewDispatcher(cfg)
	require.NoError(w.t, err)
	w.add("dispatcher", d.Close)
	return d
}

func (w *closingWorld) endpoint(srq *ep.SRQ) *ep.Endpoint {
	cfg := ep.Config{PZ: w.pz, Recv: w.events, Request: w.events, Conn: w.events, SRQ: srq}
	if srq != nil {
		cfg.Attr = &ep.Attr{MaxRequestDTOs: 1}
	}
	e, err := w.ia.NewEndpoint(cfg)
	require.NoError(w.t, err)
	w.add("endpoint", e.Close)
	return e
}

// newClosingWorld makes the objects that a program closes.
func newClosingWorld(t *rapid.T, provider string) *closingWorld {
	ia, err := Open(context.Background(), provider)
	require.NoError(t, err)
	w := &closingWorld{t: t, ia: ia}
	w.add("adapter", ia.Close)
	w.add("graceful", ia.CloseGraceful)
	w.pz, err = ia.NewPZ()
	require.NoError(t, err)
	w.add("zone", w.pz.Close)
	w.lmr, err = w.pz.Alloc(64, hw.AllPrivileges)
	require.NoError(t, err)
	w.add("region", w.lmr.Free)
	w.events = w.dispatcher(evd.Config{QLen: 256, Mode: evd.ModeChannel})
	srq, err := ia.NewSRQ(w.pz, 4, 1)
	require.NoError(t, err)
	w.add("SRQ", srq.Close)
	w.endpoint(srq)
	cno, err := ia.NewCNO(evd.CNOConfig{})
	require.NoError(t, err)
	w.add("CNO", cno.Close)
	w.dispatcher(evd.Config{QLen: 4, CNO: cno})
	for range rapid.IntRange(1, 3).Draw(t, "points") {
		w.listen(rapid.IntRange(0, 2).Draw(t, "kind"))
	}
	w.serve(provider)
	w.answers = rapid.SliceOfN(rapid.IntRange(0, 4), 1, 6).Draw(t, "answers")
	return w
}

// listen makes a service point of a kind, with a dispatcher of a mode that the
// generator draws.
func (w *closingWorld) listen(kind int) {
	cfg := evd.Config{QLen: 4, Mode: evd.Mode(rapid.IntRange(0, 2).Draw(w.t, "mode"))}
	if rapid.Bool().Draw(w.t, "callback") {
		cfg.Mode, cfg.Callback = evd.ModeCallback, w.answerAll
	}
	d := w.dispatcher(cfg)
	switch kind {
	case 0, 1:
		p, err := w.ia.NewPSP(ep.PSPConfig{Dispatcher: d, Flags: []ep.PSPFlags{ep.PSPConsumer, ep.PSPProvider}[kind]})
		require.NoError(w.t, err)
		w.points = append(w.points, p.Qual())
		w.add("service point", p.Close)
	default:
		p, err := w.ia.NewRSP(ep.RSPConfig{Dispatcher: d, Endpoint: w.endpoint(nil)})
		require.NoError(w.t, err)
		w.points = append(w.points, p.Qual())
		w.add("service point", p.Close)
	}
	if cfg.Mode != evd.ModeCallback && rapid.Bool().Draw(w.t, "consumed") {
		w.consume(d)
	}
}

// serve makes a listener that has dialed itself. The test accepts its requests.
func (w *closingWorld) serve(provider string) {
	address := ""
	if provider == "iwarp" {
		address = "127.0.0.1:0"
	}
	cfg := ConnConfig{Depth: 1, Message: 64}
	l, err := w.ia.Listen(context.Background(), address, cfg)
	require.NoError(w.t, err)
	w.listener = l
	c, err := l.Dial(l.Addr(), nil)
	require.NoError(w.t, err)
	w.add("connection", c.Close)
	w.add("listener", l.Close)
	w.add("listener", func() error { return l.Shutdown(context.Background()) })
	w.consumers.Go(func() {
		for ev := <-l.Requests(); ev.Number != event.Closed; ev = <-l.Requests() {
			_, err := l.Accept(ep.RequestOf(ev), nil)
			w.failUnlessCoded(err)
		}
	})
}

// dial dials the listener in both ways, which may be closed at any time.
func (w *closingWorld) dial() {
	_, err := w.listener.Dial(w.listener.Addr(), nil)
	w.failUnlessCoded(err)
	_, err = w.ia.Dial(context.Background(), w.listener.Addr(), ConnConfig{Depth: 1, Message: 64})
	var end event.Error
	if !errors.As(err, &end) {
		w.failUnlessCoded(err)
	}
}

// failUnlessCoded notes an error that has no code, or that is an internal one.
func (w *closingWorld) failUnlessCoded(err error) {
	var code *hw.Error
	if err != nil && (!errors.As(err, &code) || code.Type == hw.InternalError) {
		w.fail(err)
	}
}

// consume answers the requests of a dispatcher until the dispatcher is closed.
func (w *closingWorld) consume(d *evd.Dispatcher) {
	w.consumers.Go(func() {
		for ev := range d.Events(context.Background()) {
			w.answerAll([]event.Event{ev})
		}
	})
}

func (w *closingWorld) answerAll(evs []event.Event) {
	for _, ev := range evs {
		if cr := ep.RequestOf(ev); cr != nil {
			w.answer(cr, w.answers[int(w.answered.Add(1))%len(w.answers)])
		}
	}
}

// answer does one of several things with a request. The adapter, and with it whatever
// the answer needs, may be closed at any time.
func (w *closingWorld) answer(cr *ep.CR, how int) {
	var err error
	switch how {
	case 0:
		err = cr.Reject(nil)
	case 1:
		if e, newErr := w.ia.NewEndpoint(ep.Config{PZ: w.pz, Conn: w.events}); newErr == nil {
			err = cr.Accept(e, nil)
		}
	case 2:
		p, queryErr := cr.Query()
		if queryErr == nil && p.Endpoint != nil {
			_ = p.Endpoint.Modify(ep.Param{PZ: w.pz, Conn: w.events}, "PZ", "Conn")
			err = cr.Accept(nil, nil)
		}
	case 3:
		err = cr.Handoff(w.points[0])
	default: // the program keeps the request
	}
	if err != nil {
		w.failUnlessCoded(fmt.Errorf("answer %d: %w", how, err))
	}
}

// make makes objects until the adapter refuses.
func (w *closingWorld) make() {
	for range 8 {
		d, err := w.ia.NewDispatcher(channel(4))
		if err == nil {
			_, err = w.ia.NewPSP(ep.PSPConfig{Dispatcher: d, Flags: ep.PSPProvider})
		}
		if err == nil {
			_, err = w.ia.NewEndpoint(ep.Config{PZ: w.pz, Recv: d, Request: d, Conn: d})
		}
		if err != nil {
			if !errors.Is(err, hw.ErrInvalidHandle) {
				w.fail(err)
			}
			return
		}
	}
}

// program closes objects from several goroutines while the peer asks for connections.
func (w *closingWorld) program(peer *closingPeer) {
	one := rapid.SliceOfN(rapid.IntRange(0, len(w.closers)-1), 1, 12)
	orders := rapid.SliceOfN(one, 2, 4).Draw(w.t, "orders")
	asks := rapid.SliceOfN(rapid.IntRange(0, len(w.points)-1), 0, 6).Draw(w.t, "asks")
	var wg sync.WaitGroup
	for _, order := range orders {
		wg.Go(func() {
			for _, i := range order {
				w.fail(w.closers[i].run())
			}
		})
	}
	if rapid.Bool().Draw(w.t, "makes") {
		wg.Go(w.make)
	}
	wg.Go(func() {
		for _, i := range asks {
			w.fail(peer.ask(w.ia, w.points[i]))
		}
	})
	if rapid.Bool().Draw(w.t, "dials") {
		wg.Go(w.dial)
	}
	if rapid.Bool().Draw(w.t, "closes") {
		wg.Go(func() { w.fail(w.ia.Close()) })
	}
	wg.Wait()
}

// closingPeer is an adapter whose endpoints ask for connections, without a time limit.
type closingPeer struct {
	ia    *IA
	pz    *mem.PZ
	conn  *evd.Dispatcher
	asked []*ep.Endpoint
}

func newClosingPeer(t *testing.T, provider string) *closingPeer {
	p := &closingPeer{ia: open(t, provider)}
	var err error
	p.pz, err = p.ia.NewPZ()
	require.NoError(t, err)
	p.conn, err = p.ia.NewDispatcher(channel(256))
	require.NoError(t, err)
	return p
}

func (p *closingPeer) ask(to *IA, qual uint64) error {
	e, err := p.ia.NewEndpoint(ep.Config{PZ: p.pz, Conn: p.conn})
	if err != nil {
		return err
	}
	p.asked = append(p.asked, e)
	return e.Connect(ep.ConnectConfig{Addr: to.Attr().Address, Qual: qual})
}

// finish waits until every endpoint that asked has an event of the outcome. The other
// adapter is closed.
func (p *closingPeer) finish() error {
	for left := len(p.asked); left > 0; {
		if (<-p.conn.C()).Number != event.Established {
			left--
		}
	}
	var errs []error
	for _, e := range p.asked {
		errs = append(errs, e.Close())
	}
	p.asked = nil
	return errors.Join(errs...)
}

func TestAnyNumberOfClosersInAnyOrder(t *testing.T) {
	require.NoError(t, flag.Set("rapid.nofailfile", "true"))
	for provider, programs := range map[string]int{"loop": *closingPrograms, "iwarp": *closingPrograms / 10} {
		t.Run(provider, func(t *testing.T) {
			require.NoError(t, flag.Set("rapid.checks", strconv.Itoa(programs)))
			peer := newClosingPeer(t, provider)
			rapid.Check(t, func(t *rapid.T) {
				hangs := time.AfterFunc(time.Minute, func() {
					debug.SetTraceback("all")
					panic("a program of closers hangs")
				})
				defer hangs.Stop()
				w := newClosingWorld(t, provider)
				w.program(peer)
				require.NoError(t, w.ia.Close())
				w.consumers.Wait()
				require.NoError(t, peer.finish())
				require.NoError(t, errors.Join(w.errs...))
				for _, c := range w.closers {
					if c.kind != "graceful" {
						assert.NoError(t, c.close(), "a %s that is closed", c.kind)
					}
				}
			})
		})
	}
}
