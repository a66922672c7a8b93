package ep

import (
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

// accept connects a new endpoint to e, and takes the events of both.
func (r *rig) accept(e *Endpoint) *Endpoint {
	a := r.endpoint(nil)
	r.connect(a, e)
	return a
}

func TestModifyGivesAtLeastWhatIsAskedFor(t *testing.T) {
	r := newRig(t)
	e := r.endpoint(&Attr{MaxRecvDTOs: 8, MaxReadIn: NoDTOs, ReceiverNotReady: -1})
	before, err := e.Query()
	require.NoError(t, err)
	require.NoError(t, e.Modify(Param{}), "nothing is asked for")
	conn := r.dispatcher(evd.ModeQueue, 8)
	require.NoError(t, e.Modify(Param{
		Conn: conn, Attr: Attr{MaxRecvDTOs: 100, MaxMessageSize: 1000, MaxRequestDTOs: 3},
	}, "Conn", "MaxRecvDTOs", "MaxMessageSize"))
	want := before
	want.Conn = conn
	want.Attr.MaxRecvDTOs, want.Attr.MaxMessageSize = 100, 1000
	got, err := e.Query()
	require.NoError(t, err)
	assert.Equal(t, want, got, "and nothing else has changed")
	require.NoError(t, e.Modify(Param{Conn: r.conn, Attr: Attr{MaxRecvDTOs: 8}}, "MaxRecvDTOs", "Conn"))
	require.NoError(t, conn.Close(), "nothing feeds it any more")
	got, err = e.Query()
	require.NoError(t, err)
	assert.GreaterOrEqual(t, got.Attr.MaxRecvDTOs, 8)
	a := r.accept(e)
	require.ErrorIs(t, e.PostSend(1, 0, r.lmr.Segment(0, 1001)), hw.ErrLength)
	requireWorks(t, r, e, a)
}

// A batch looks for its way without the token, at any moment of a Modify.
func TestReceivesArePostedWhileModifyChangesTheEndpoint(t *testing.T) {
	const most = 64
	r := newRig(t)
	e := r.endpoint(&Attr{MaxRecvDTOs: most})
	var modifying sync.WaitGroup
	modifying.Go(func() {
		for i := range 100 {
			if !assert.NoError(t, e.Modify(Param{Attr: Attr{MaxRequestDTOs: 10 + i}}, "MaxRequestDTOs")) {
				return
			}
		}
	})
	for range most / 2 {
		n, err := e.PostRecvBatch(r.batchOf(2))
		require.NoError(t, err)
		require.Equal(t, 2, n)
	}
	modifying.Wait()
	requireWorks(t, r, e, r.accept(e))
}

func TestModifyChangesAllOrNothing(t *testing.T) {
	r := newRig(t)
	e := r.endpoint(nil)
	other := r.dispatcher(evd.ModeQueue, 8)
	closed := r.dispatcher(evd.ModeQueue, 8)
	require.NoError(t, closed.Close())
	foreign := newRig(t)
	pz, err := r.domain.NewPZ()
	require.NoError(t, err)
	dead, err := r.domain.NewPZ()
	require.NoError(t, err)
	require.NoError(t, dead.Close())
	before, err := e.Query()
	require.NoError(t, err)
	for name, c := range map[string]struct {
		spoil func(*Param)
		want  error
	}{
		"no zone":                {func(p *Param) { p.PZ = nil }, &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandlePZ}},
		"a closed zone":          {func(p *Param) { p.PZ = dead }, &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandlePZ}},
		"another adapter's zone": {func(p *Param) { p.PZ = foreign.pz }, &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandlePZ}},
		"a closed dispatcher":    {func(p *Param) { p.Request = closed }, hw.ErrInvalidHandle},
		"a dispatcher that takes other events": {
			func(p *Param) { p.Conn = r.unwilling() }, hw.ErrInvalidParameter,
		},
		"a depth beyond the device's": {func(p *Param) { p.Attr.MaxRequestDTOs = 1 << 30 }, hw.ErrInvalidParameter},
		"a negative depth":            {func(p *Param) { p.Attr.MaxRecvDTOs = -2 }, hw.ErrInvalidParameter},
		"a long message":              {func(p *Param) { p.Attr.MaxMessageSize = 1 << 62 }, hw.ErrInvalidParameter},
		"an unknown flag":             {func(p *Param) { p.Attr.RecvFlags = 1 << 9 }, hw.ErrInvalidParameter},
		"another quality of service":  {func(p *Param) { p.Attr.QoS = 4 }, hw.ErrModelNotSupported},
		"flags that don't go together": {
			func(p *Param) { p.Attr.RequestFlags = hw.Unsignalled }, invalidState(hw.StateEVDConfigThreshold),
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := Param{PZ: pz, Recv: other, Request: other, Conn: other, Attr: Attr{MaxRecvDTOs: 99, MaxRequestIOV: 9}}
			c.spoil(&p)
			require.ErrorIs(t, e.Modify(p, "PZ", "Recv", "Request", "Conn", "Attr"), c.want)
			after, err := e.Query()
			require.NoError(t, err)
			assert.Equal(t, before, after)
		})
	}
	require.NoError(t, other.Close(), "nothing feeds it")
	require.NoError(t, pz.Close(), "nothing is in it")
	requireWorks(t, r, r.accept(e), e)
	require.ErrorIs(t, (*Endpoint)(nil).Modify(Param{}, "PZ"), &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandleEP})
	require.NoError(t, e.Close())
	require.ErrorIs(t, e.Modify(Param{}), &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandleEP})
}

func TestReceivesStayPostedWhenTheQueueGrows(t *testing.T) {
	r := newRig(t)
	e := r.endpoint(&Attr{MaxRecvDTOs: 3, MaxRecvIOV: 1})
	for i := range 3 {
		require.NoError(t, e.PostRecv(uint64(i), 0, r.lmr.Segment(64*i, 8)))
	}
	require.ErrorIs(t, e.PostRecv(3, 0), hw.ErrInsufficientResources)
	require.NoError(t, e.Modify(Param{Attr: Attr{MaxRecvDTOs: 5, MaxRecvIOV: 2}}, "MaxRecvDTOs", "MaxRecvIOV"))
	for i := 3; i < 5; i++ {
		require.NoError(t, e.PostRecv(uint64(i), 0, r.lmr.Segment(64*i, 3), r.lmr.Segment(64*i+3, 5)))
	}
	require.ErrorIs(t, e.PostRecv(5, 0), hw.ErrInsufficientResources)
	a := r.accept(e)
	copy(r.lmr.Bytes()[4096:], "12345678")
	for i := range 5 {
		require.NoError(t, a.PostSend(uint64(100+i), hw.Suppress, r.lmr.Segment(4096, 8)))
		ev := r.next(r.dto)
		assert.Equal(t, uint64(i), ev.Cookie)
		assert.Equal(t, uint32(8), ev.Length)
		assert.Equal(t, "12345678", string(r.lmr.Bytes()[64*i:64*i+8]))
	}
	requireWorks(t, r, a, e)
	require.NoError(t, e.Disconnect(Abrupt))
	require.NoError(t, e.Reset())
	require.NoError(t, e.Modify(Param{Attr: Attr{MaxRecvDTOs: 200, MaxRequestDTOs: 200}}, "MaxRecvDTOs", "MaxRequestDTOs"), "in a later life")
	r.next(r.conn)
	r.next(r.conn)
	requireWorks(t, r, r.accept(e), e)
}

func TestPostsGoOnWhileTheQueueGrows(t *testing.T) {
	r := newRig(t)
	e := r.endpoint(&Attr{MaxRecvDTOs: 1})
	const posters, each = 4, 200
	var wg sync.WaitGroup
	for p := range posters {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; i < each; {
				if e.PostRecv(uint64(p*each+i), 0, r.lmr.Segment(0, 8)) == nil {
					i++
				}
			}
		}()
	}
	for depth := 2; depth <= 1024; depth += depth/3 + 1 {
		require.NoError(t, e.Modify(Param{Attr: Attr{MaxRecvDTOs: depth, MaxRecvIOV: 1 + depth%7}}, "MaxRecvDTOs", "MaxRecvIOV"))
	}
	wg.Wait()
	require.NoError(t, e.Close())
	next := [posters]int{}
	for range posters * each {
		ev := r.next(r.dto)
		p := ev.Cookie / each
		assert.Equal(t, hw.StatusFlushed, ev.Status)
		assert.Equal(t, next[p], int(ev.Cookie%each), "in the order posted")
		next[p]++
	}
	r.none(r.dto)
}

func TestTheZoneIsThatOfTheReceivesToCome(t *testing.T) {
	r := newRig(t)
	pz, err := r.domain.NewPZ()
	require.NoError(t, err)
	lmr, err := pz.Alloc(4096, hw.AllPrivileges)
	require.NoError(t, err)
	e := r.endpoint(nil)
	require.NoError(t, e.PostRecv(1, 0))
	require.NoError(t, e.Modify(Param{PZ: pz}, "PZ"))
	require.ErrorIs(t, e.PostRecv(2, 0, r.lmr.Segment(0, 8)), hw.ErrProtection)
	require.NoError(t, e.PostRecv(2, 0, lmr.Segment(0, 8)))
	require.NoError(t, e.Modify(Param{PZ: r.pz}, "PZ"))
	a := r.accept(e)
	require.NoError(t, a.PostSend(10, hw.Suppress))
	ev := r.next(r.dto)
	assert.Equal(t, uint64(1), ev.Cookie)
	assert.Equal(t, hw.StatusSuccess, ev.Status)
	require.NoError(t, a.PostSend(11, hw.Suppress, r.lmr.Segment(0, 8)))
	got := map[uint64]hw.Status{}
	for range 2 {
		ev := r.next(r.dto)
		got[ev.Cookie] = ev.Status
	}
	assert.Equal(t, hw.StatusLocalProtection, got[2], "its region is of the other zone")
	assert.Error(t, got[11].Err())
	for range 2 {
		assert.Equal(t, event.Broken, r.next(r.conn).Number)
	}
	require.NoError(t, lmr.Free())
	require.NoError(t, pz.Close(), "the endpoint has left it")
}

func TestCompletionsGoWhereModifySays(t *testing.T) {
	r := newRig(t)
	e := r.endpoint(nil)
	other := r.dispatcher(evd.ModeQueue, 8)
	require.NoError(t, e.PostRecv(1, 0, r.lmr.Segment(0, 8)))
	require.NoError(t, e.Modify(Param{Recv: other}, "Recv"))
	require.NoError(t, e.PostRecv(2, 0, r.lmr.Segment(0, 8)))
	require.NoError(t, e.Modify(Param{}, "Recv", "Request"))
	require.NoError(t, e.PostRecv(3, 0, r.lmr.Segment(0, 8)))
	a := r.accept(e)
	for i := range 3 {
		require.NoError(t, a.PostSend(uint64(10+i), 0, r.lmr.Segment(0, 8)))
	}
	assert.Equal(t, uint64(2), r.next(other).Cookie)
	seen := map[uint64]bool{}
	for range 4 {
		seen[r.next(r.dto).Cookie] = true
	}
	assert.Equal(t, map[uint64]bool{1: true, 10: true, 11: true, 12: true}, seen, "the third receive's is lost")
	require.NoError(t, e.PostSend(20, 0))
	r.none(r.dto)
	require.NoError(t, e.Close())
	require.NoError(t, other.Close())
}

func TestReceiveFlagsAreSetBeforeReceivesArePosted(t *testing.T) {
	r := newRig(t)
	quiet := r.dispatcher(evd.ModeQueue, 64)
	e := r.endpointOf(Config{PZ: r.pz, Recv: quiet, Request: r.dto, Conn: r.conn})
	require.ErrorIs(t, e.PostRecv(1, hw.Unsignalled), hw.ErrInvalidParameter)
	flags := Param{Attr: Attr{RecvFlags: hw.Unsignalled}}
	require.NoError(t, e.Modify(flags, "RecvFlags"))
	q, err := quiet.Query()
	require.NoError(t, err)
	assert.Equal(t, evd.ConfigNotify, q.State.Config())
	require.NoError(t, e.PostRecv(1, hw.Unsignalled))
	require.ErrorIs(t, e.Modify(Param{}, "RecvFlags"), invalidState(hw.StateEPUnconnected))
	require.NoError(t, e.Modify(flags, "RecvFlags"), "they are what they were")
	require.NoError(t, e.PostRecv(2, hw.Unsignalled))
	r.accept(e)
	require.NoError(t, e.Close())
	require.NoError(t, quiet.Close())
}

// All streams that feed one dispatcher agree on what notifies: all have UNSIGNALLED
// or none; SOLICITED_WAIT goes only with SOLICITED_WAIT; other streams go with
// neither.
func TestFlagsThatDoNotGoTogetherAreRefused(t *testing.T) {
	r := newRig(t)
	d := func() *evd.Dispatcher { return r.dispatcher(evd.ModeQueue, 64) }
	for name, c := range map[string]struct {
		make func() (Config, *evd.Dispatcher)
		want hw.Subtype
	}{
		"an unsignalled direction and one that is not": {func() (Config, *evd.Dispatcher) {
			one := d()
			return Config{Recv: one, Request: one, Attr: &Attr{RecvFlags: hw.Unsignalled}}, one
		}, hw.StateEVDConfigNotify},
		"a solicited direction and one that is not": {func() (Config, *evd.Dispatcher) {
			one := d()
			return Config{Recv: one, Request: one, Attr: &Attr{RecvFlags: hw.SolicitedWait}}, one
		}, hw.StateEVDConfigSolicited},
		"connection events and an unsignalled direction": {func() (Config, *evd.Dispatcher) {
			one := d()
			return Config{Request: one, Conn: one, Attr: &Attr{RequestFlags: hw.Unsignalled}}, one
		}, hw.StateEVDConfigNotify},
		"an ordinary endpoint's dispatcher and an unsignalled direction": {func() (Config, *evd.Dispatcher) {
			return Config{Recv: r.dto, Attr: &Attr{RecvFlags: hw.Unsignalled}}, nil
		}, hw.StateEVDConfigThreshold},
	} {
		t.Run(name, func(t *testing.T) {
			r.endpoint(nil)
			cfg, one := c.make()
			cfg.PZ = r.pz
			_, err := r.adapter.NewEndpoint(cfg)
			require.ErrorIs(t, err, invalidState(c.want))
			if one != nil {
				require.NoError(t, one.Close(), "nothing feeds it")
			}
		})
	}
	both := d()
	e := r.endpointOf(Config{PZ: r.pz, Recv: both, Request: both, Attr: &Attr{RecvFlags: hw.Unsignalled, RequestFlags: hw.Unsignalled}})
	require.NoError(t, e.Modify(Param{}, "RecvFlags", "RequestFlags"), "both at once")
	require.NoError(t, e.Modify(Param{Conn: both}, "Conn"))
}

func TestReadsAndWritesHaveTheirOwnMostSegments(t *testing.T) {
	r := newRig(t)
	a, _ := r.pair(&Attr{MaxRequestIOV: 3, MaxReadIOV: 1, MaxWriteIOV: 2})
	seg := r.lmr.Segment(0, 8)
	remote := r.lmr.Remote(4096, 64)
	require.NoError(t, a.PostRDMARead(1, 0, r.lmr.Remote(4096, 8), seg))
	require.ErrorIs(t, a.PostRDMARead(1, 0, r.lmr.Remote(4096, 8), seg, seg), hw.ErrInvalidParameter)
	require.NoError(t, a.PostRDMAWrite(1, 0, remote, seg, seg))
	require.ErrorIs(t, a.PostRDMAWrite(1, 0, remote, seg, seg, seg), hw.ErrInvalidParameter)
	b := r.endpoint(&Attr{MaxReadIOV: 6})
	p, err := b.Query()
	require.NoError(t, err)
	assert.GreaterOrEqual(t, p.Attr.MaxReadIOV, 6)
	assert.GreaterOrEqual(t, p.Attr.MaxRequestIOV, 4)
}

func TestQueryFillsEveryField(t *testing.T) {
	r := newRig(t)
	a, _ := r.pair(&Attr{ReceiverNotReady: time.Minute, DrainTimeout: time.Hour})
	p, err := a.Query()
	require.NoError(t, err)
	zero := map[string]string{
		"Comm":        "the other end is known by its address",
		"SRQ":         "its receives are its own",
		"ServiceType": "a reliable connection is number 0",
		"QoS":         "best effort is number 0",
		"RecvFlags":   "none were granted", "RequestFlags": "none were granted",
	}
	for _, part := range []reflect.Value{reflect.ValueOf(p), reflect.ValueOf(p.Attr)} {
		for f, v := range part.Fields() {
			assert.Equal(t, zero[f.Name] != "", v.IsZero(), f.Name)
		}
	}
}

func TestModifyTakesTheNamesOfFieldsThatMayChange(t *testing.T) {
	r := newRig(t)
	e := r.endpoint(nil)
	before, err := e.Query()
	require.NoError(t, err)
	for _, name := range []string{"", "State", "Comm", "LocalAddr", "LocalQual", "RemoteAddr", "RemoteQual", "SRQ", "recv", "Attr.MaxRecvDTOs"} {
		err := e.Modify(Param{Attr: Attr{MaxRecvDTOs: 99}}, "MaxRecvDTOs", name)
		require.ErrorIs(t, err, &hw.Error{Type: hw.InvalidParameter, Sub: hw.Arg2}, name)
	}
	after, err := e.Query()
	require.NoError(t, err)
	assert.Equal(t, before, after)
	params, attrs := reflect.TypeFor[Param](), reflect.TypeFor[Attr]()
	for _, name := range append(fields{"PZ", "Recv", "Request", "Conn"}, attrNames...) {
		_, param := params.FieldByName(name)
		_, attr := attrs.FieldByName(name)
		require.NotEqual(t, param, attr, "%s is a field of one of them", name)
		require.NoError(t, e.Modify(before, name), name)
	}
}

func TestAnEndpointWithWindowsStaysAsItIs(t *testing.T) {
	r := newRig(t)
	e := r.endpoint(nil)
	w, err := e.NewRMR()
	require.NoError(t, err)
	grow := Param{Attr: Attr{MaxRecvDTOs: 100, MaxMessageSize: 1000}}
	require.ErrorIs(t, e.Modify(grow, "MaxRecvDTOs"), invalidState(hw.StateEPUnconnected))
	require.NoError(t, e.Modify(grow, "MaxMessageSize"))
	require.NoError(t, w.Free())
	require.NoError(t, e.Modify(grow, "MaxRecvDTOs"))
	bare, _, _ := r.tentative()
	_, err = bare.NewRMR()
	require.ErrorIs(t, err, invalidState(hw.StateEPPZ))
}

// Receives would lose their completions if the dispatcher that they were posted for
// closed.
func TestADispatcherOutlivesTheReceivesPostedForIt(t *testing.T) {
	r := newRig(t)
	e := r.endpoint(nil)
	old, now := r.dispatcher(evd.ModeQueue, 8), r.dispatcher(evd.ModeQueue, 8)
	require.NoError(t, e.Modify(Param{Recv: old}, "Recv"))
	require.NoError(t, e.PostRecv(1, 0, r.lmr.Segment(0, 8)))
	for range 2 { // and back, and away again
		require.NoError(t, e.Modify(Param{Recv: now}, "Recv"))
		require.ErrorIs(t, old.Close(), hw.ErrInvalidState)
		require.NoError(t, e.Modify(Param{Recv: old}, "Recv"))
	}
	require.NoError(t, e.Modify(Param{Recv: now}, "Recv"))
	a := r.accept(e)
	require.NoError(t, a.PostSend(2, 0, r.lmr.Segment(0, 8)))
	assert.EqualValues(t, 1, r.next(old).Cookie)
	require.ErrorIs(t, old.Close(), hw.ErrInvalidState, "who knows what is still posted")
	require.NoError(t, e.Disconnect(Abrupt))
	require.Eventually(t, func() bool { return e.State() == Disconnected }, time.Minute, time.Millisecond)
	require.NoError(t, e.Reset())
	require.NoError(t, old.Close())
}

// Segments do not shrink when the depth grows.
func TestReceivesKeepTheirSegmentsWhenTheQueueGrows(t *testing.T) {
	r := newRig(t)
	e := r.endpoint(&Attr{MaxRecvDTOs: 2, MaxRecvIOV: 3})
	require.NoError(t, e.PostRecv(1, 0, r.lmr.Segment(0, 2), r.lmr.Segment(64, 2), r.lmr.Segment(128, 4)))
	require.NoError(t, e.Modify(Param{Attr: Attr{MaxRecvDTOs: 8, MaxRecvIOV: 1}}, "MaxRecvDTOs", "MaxRecvIOV"))
	p, err := e.Query()
	require.NoError(t, err)
	assert.Equal(t, 3, p.Attr.MaxRecvIOV)
	a := r.accept(e)
	copy(r.lmr.Bytes()[4096:], "12345678")
	require.NoError(t, a.PostSend(2, hw.Suppress, r.lmr.Segment(4096, 8)))
	ev := r.next(r.dto)
	require.NoError(t, ev.Err())
	assert.Equal(t, uint32(8), ev.Length)
	b := r.lmr.Bytes()
	assert.Equal(t, "12345678", string(b[0:2])+string(b[64:66])+string(b[128:132]))
}
