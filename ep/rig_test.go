package ep

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/ep/internal/life"
	"godat/ep/internal/line"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	_ "godat/hw/loop"
	"godat/internal/door"
	"godat/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is an adapter on loop with what tests need around it. The rig closes and
// checks everything when the test ends.
type rig struct {
	t       testing.TB
	adapter *Adapter
	domain  *mem.Domain
	pz      *mem.PZ
	lmr     *mem.LMR // 64 KiB, all privileges
	psp     *PSP
	windows []*mem.RMR

	cr, conn, dto *evd.Dispatcher // in queue mode
}

func newRig(t testing.TB) *rig { return newRigOn(t, loopDevice(t)) }

func loopDevice(t testing.TB) hw.Device {
	provider, ok := hw.Lookup("loop")
	require.True(t, ok)
	dev, err := provider.Open(hw.OpenConfig{Params: map[string]string{"notready": "wait"}})
	require.NoError(t, err)
	return dev
}

func newRigOn(t testing.TB, dev hw.Device) *rig {
	var err error
	r := &rig{t: t, domain: mem.NewDomain(door.Key{}, dev, nil)}
	r.adapter = NewAdapter(door.Key{}, AdapterConfig{Device: dev, Domain: r.domain})
	r.pz, err = r.domain.NewPZ()
	require.NoError(t, err)
	r.lmr, err = r.pz.Alloc(64<<10, hw.AllPrivileges)
	require.NoError(t, err)
	r.cr, r.conn, r.dto = r.dispatcher(evd.ModeQueue, 256), r.dispatcher(evd.ModeQueue, 256), r.dispatcher(evd.ModeQueue, 1024)
	r.psp, err = r.adapter.NewPSP(PSPConfig{Dispatcher: r.cr})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, r.adapter.Close())
		for _, w := range r.windows {
			require.NoError(t, w.Free())
		}
		require.NoError(t, r.lmr.Free())
		require.NoError(t, r.pz.Close())
		require.NoError(t, r.domain.Close())
		for _, d := range []*evd.Dispatcher{r.cr, r.conn, r.dto} {
			require.NoError(t, d.Close())
		}
		require.NoError(t, dev.Close())
	})
	return r
}

func (r *rig) dispatcher(mode evd.Mode, qlen int) *evd.Dispatcher {
	d, err := evd.New(evd.Config{QLen: qlen, Mode: mode})
	require.NoError(r.t, err)
	return d
}

// endpoint makes an endpoint that completes to r.dto and whose connection events go
// to r.conn.
func (r *rig) endpoint(attr *Attr) *Endpoint {
	return r.endpointOf(Config{PZ: r.pz, Recv: r.dto, Request: r.dto, Conn: r.conn, Attr: attr})
}

func (r *rig) endpointOf(cfg Config) *Endpoint {
	e, err := r.adapter.NewEndpoint(cfg)
	require.NoError(r.t, err)
	return e
}

// request returns a connection request from a new endpoint.
func (r *rig) request() *CR {
	active := r.endpoint(nil)
	require.NoError(r.t, active.Connect(ConnectConfig{Qual: r.psp.Qual()}))
	cr := RequestOf(r.next(r.cr))
	require.NotNil(r.t, cr)
	return cr
}

// connect connects a to b and takes both ESTABLISHED events off r.conn.
func (r *rig) connect(a, b *Endpoint) {
	require.NoError(r.t, a.Connect(ConnectConfig{Qual: r.psp.Qual()}))
	require.NoError(r.t, RequestOf(r.next(r.cr)).Accept(b, nil))
	for range 2 {
		ev := r.next(r.conn)
		require.Equal(r.t, event.Established, ev.Number)
	}
}

// pair makes two connected endpoints.
func (r *rig) pair(attr *Attr) (a, b *Endpoint) {
	a, b = r.endpoint(attr), r.endpoint(attr)
	r.connect(a, b)
	return a, b
}

// closed is the state of an endpoint that is gone.
const closed = State(life.Closed)

// inBox is the state as a mailbox has it.
func (s State) inBox() line.State { return inBox(life.State(s)) }

// force sets a state by hand, and restores the old one before the endpoint closes.
func (r *rig) force(e *Endpoint, s State) {
	was := e.State()
	e.box.SetState(s.inBox())
	r.t.Cleanup(func() {
		if e.State() == s {
			e.box.SetState(was.inBox())
		}
	})
}

// next waits for the next event of d.
func (r *rig) next(d *evd.Dispatcher) event.Event {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ev, _, err := d.Wait(ctx, 1)
	require.NoError(r.t, err)
	return ev
}

// none checks that d has no event now.
func (r *rig) none(d *evd.Dispatcher) {
	var buf [1]event.Event
	n, err := d.Dequeue(buf[:])
	require.NoError(r.t, err)
	require.Zero(r.t, n, "unexpected event %v", buf[0])
}

// await waits until cond holds.
func (r *rig) await(cond func() bool) {
	require.Eventually(r.t, cond, time.Minute, time.Millisecond)
}

// useQP puts another queue pair in place of the endpoint's, until the rig closes the endpoint.
func (r *rig) useQP(e *Endpoint, qp hw.QP) {
	own := e.box.QP()
	e.box.SetQP(qp)
	r.t.Cleanup(func() { e.box.SetQP(own) })
}

// runner is the endpoint's queue pair.
func runner(e *Endpoint) hw.Runner { return e.box.QP().(hw.Runner) }
