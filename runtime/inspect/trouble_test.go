package inspect

import (
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// wrong looks twice, with a time between, and demands the line of that trouble.
func (r *rig) wrong(kind, name string, words ...string) {
	r.t.Helper()
	synctest.Wait()
	r.ask("?format=json")
	time.Sleep(late + time.Millisecond)
	synctest.Wait()
	var found []string
	for _, t := range r.ask("?format=json").Troubles {
		found = append(found, t.Name+" "+t.Text)
		if t.Kind != kind || t.Name != name {
			continue
		}
		for _, word := range words {
			assert.Contains(r.t, t.Text, word)
		}
		body := r.get("").Body.String()
		assert.Contains(r.t, body, `<li><a href="?`)
		assert.NotContains(r.t, body, "Nothing is wrong")
		return
	}
	require.Fail(r.t, "no line", "%s of %s; there is %q", kind, name, found)
}

// kinds are those of the troubles that the page has.
func (r *rig) kinds() (kinds []string) {
	for _, t := range r.ask("?format=json").Troubles {
		kinds = append(kinds, t.Kind)
	}
	return kinds
}

// staged runs a program on loop that makes a trouble, with time that costs nothing.
func staged(t *testing.T, cfg dat.ConnConfig, trouble func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ia, err := dat.Open(t.Context(), "loop")
		require.NoError(t, err)
		cfg.Conns = 4
		ln, err := ia.Listen(t.Context(), "", cfg)
		require.NoError(t, err)
		trouble(&rig{t, ia, ln, New(ia)})
		require.NoError(t, ia.Close())
	})
}

func TestAConsumerThatSleepsIsNamed(t *testing.T) {
	staged(t, dat.ConnConfig{}, func(r *rig) {
		client, _ := r.join()
		require.NoError(r.t, client.SendBytes([]byte("x")))
		r.wrong("no consumer", r.ln.String(), "this program does not take the messages and completions of its connections: 1 event has waited for 1 s; its goroutine that should take them sleeps or is blocked")
	})
}

func TestAConnectionWhoseOwnConsumerSleepsIsNamed(t *testing.T) {
	staged(t, dat.ConnConfig{Apart: true}, func(r *rig) {
		client, err := r.ln.Dial(r.ln.Addr(), nil)
		require.NoError(r.t, err)
		server, err := r.ln.Accept(ep.RequestOf(<-r.ln.Requests()), nil)
		require.NoError(r.t, err)
		require.Equal(r.t, event.Established, (<-client.Events()).Number)
		r.wrong("no consumer", server.String(), "this program does not take its messages and completions: 1 event has")
	})
}

func TestACallbackThatRunsLongIsNamed(t *testing.T) {
	staged(t, dat.ConnConfig{}, func(r *rig) {
		release := make(chan struct{})
		d, err := r.ia.NewDispatcher(evd.Config{QLen: 4, Mode: evd.ModeCallback, Streams: event.StreamSoftware, Callback: func([]event.Event) { <-release }})
		require.NoError(r.t, err)
		require.NoError(r.t, d.PostSoftware(1))
		r.wrong("callback", d.String(), "this program's callback has not returned for 1 s; nothing waits behind it")
		require.NoError(r.t, d.PostSoftware(2))
		r.wrong("callback", d.String(), "; 1 event waits behind it")
		close(release)
	})
}

func TestADispatcherThatIsFullIsNamed(t *testing.T) {
	staged(t, dat.ConnConfig{}, func(r *rig) {
		d, err := r.ia.NewDispatcher(evd.Config{QLen: 1, Mode: evd.ModeQueue, Streams: event.StreamSoftware})
		require.NoError(r.t, err)
		for d.PostSoftware(1) == nil {
		}
		r.ask("?format=json")
		assert.Equal(r.t, []string{"full"}, r.kinds())
		r.wrong("no consumer", d.String(), "this program does not take its events: 1 event has waited", "no room is left, and 1 post was refused")
		assert.Equal(r.t, []string{"no consumer"}, r.kinds(), "one cause has one line")
	})
}

func TestAPeerWithoutReceivesIsNamed(t *testing.T) {
	staged(t, dat.ConnConfig{Depth: 1, Attr: &ep.Attr{ReceiverNotReady: time.Hour}}, func(r *rig) {
		client, server := r.join()
		held := 0
		for r.t.Context().Err() == nil && client.SendBytes([]byte("x")) == nil {
			synctest.Wait()
			select {
			case ev := <-r.ln.Events():
				require.NotNil(r.t, server.Message(ev))
				held++
			default:
				require.Positive(r.t, held)
				r.wrong("peer", client.String(), "1 request has been outstanding for 1 s: the other end, "+server.String()+" in this program, has no receive posted")
				r.wrong("buffers", server.String(), fmt.Sprintf("no receive is posted: this program keeps %d buffers, the oldest for 2 s, and gives none back (Conn.Release)", held))
				story := r.get("?of=" + url.QueryEscape(server.String())).Body.String()
				assert.Contains(r.t, story, fmt.Sprintf("<dt>buffers</dt><dd>%d held by the program of ", held))
				return
			}
		}
		require.Fail(r.t, "all sends found a receive")
	})
}

// What was counted before a first look, or before a pause, may be of any time. A dispatcher may have as many places as are
// reserved, and a program closes endpoints of its own.
func TestWhatIsOldOrMeantIsNoTrouble(t *testing.T) {
	at := time.Now()
	then := dat.Snapshot{At: at.Add(-time.Hour), Listeners: make([]dat.ListenerSnapshot, 1), Dispatchers: []evd.DispatcherSnapshot{{Name: "D"}}}
	now := dat.Snapshot{At: at, Listeners: make([]dat.ListenerSnapshot, 1), Dispatchers: []evd.DispatcherSnapshot{{Name: "D", QLen: 8, Reserved: 8}}}
	now.Listeners[0].Rejected, now.Listeners[0].Overflows, now.Dispatchers[0].Lost = 500, 3, 3
	now.LastEnds = []ep.EndSnapshot{{At: at, Name: "E", Event: "CLOSED"}}
	assert.Empty(t, troubles(&seen{Snapshot: now}, nil), "a first look")
	assert.Empty(t, troubles(&seen{Snapshot: now}, &seen{Snapshot: then}), "a pause of an hour")
	then.At = at.Add(-time.Second)
	assert.Len(t, troubles(&seen{Snapshot: now}, &seen{Snapshot: then}), 3)
}

func TestACallThatWaitsForABufferOfItsConnectionIsNamed(t *testing.T) {
	staged(t, dat.ConnConfig{Depth: 2}, func(r *rig) {
		client, _ := r.join()
		held := []*mem.Buffer{client.Buffer(), client.Buffer()}
		require.Nil(r.t, client.Buffer())
		got := make(chan error)
		go func() {
			b, err := client.WaitBuffer(r.t.Context())
			client.Release(b)
			got <- err
		}()
		r.wrong("buffers", client.String(), "1 call waits for a buffer: this program keeps 2 buffers, the oldest for 1 s, and gives none back (Conn.Release)")
		assert.Contains(r.t, r.get("?of="+url.QueryEscape(client.String())).Body.String(), "; 1 call waits for one")
		for _, b := range held {
			client.Release(b)
		}
		require.NoError(r.t, <-got)
		time.Sleep(leastAge)
		assert.Empty(r.t, r.kinds())
	})
}

func TestAShutdownThatWaitsForBuffersIsNamed(t *testing.T) {
	staged(t, dat.ConnConfig{Depth: 2}, func(r *rig) {
		client, _ := r.join()
		held := client.Buffer()
		down := make(chan error)
		go func() { down <- client.Shutdown(r.t.Context()) }()
		r.wrong("buffers", client.String(), "Shutdown waits: this program keeps 1 buffer, the oldest for 1 s, and does not give it back (Conn.Release)")
		client.Release(held)
		require.NoError(r.t, <-down)
		time.Sleep(leastAge)
		assert.Empty(r.t, r.kinds())
	})
}

func TestAHookThatDoesNotReturnIsNamed(t *testing.T) {
	var release chan struct{}
	var calls atomic.Int32
	cfg := dat.ConnConfig{Established: func(*dat.Conn) {
		if calls.Add(1) == 1 {
			<-release
		}
	}}
	staged(t, cfg, func(r *rig) {
		release = make(chan struct{}) // of the bubble
		client, server := r.join()    // behind the time that a connection waits for its hook
		stuck := client
		if s, err := r.ia.Snapshot(); assert.NoError(r.t, err) && s.Conns[0].HookAge == 0 {
			stuck = server
		}
		r.wrong("hook", stuck.String(), "this program's hook (Established or Ended of ConnConfig) has not returned for 6 s")
		close(release)
		time.Sleep(leastAge)
		assert.Empty(r.t, r.kinds())
	})
}

// The device reports a suppressed request only when a later one completes. It may have sent it.
func TestAnEndpointWhoseLastRequestWasSuppressedIsNoTrouble(t *testing.T) {
	staged(t, dat.ConnConfig{Depth: 4, Message: 64}, func(r *rig) {
		client, server := r.join()
		b := client.Buffer()
		for _, flags := range []hw.Flags{hw.Suppress, 0, hw.Suppress} {
			require.NoError(r.t, client.Endpoint.PostSend(1, flags, b.Segment()))
			synctest.Wait()
			for len(r.ln.Events()) > 0 {
				if ev := <-r.ln.Events(); ev.Op == hw.OpRecv {
					server.Release(server.Message(ev))
				}
			}
		}
		require.Zero(r.t, r.ask("?format=json&filter=dial").Table.Items[0].Endpoint.Requests.Outstanding)
		for range 3 {
			synctest.Wait()
			assert.Empty(r.t, r.ask("?format=json").Troubles)
			time.Sleep(late + time.Millisecond)
		}
	})
}

func TestAPoolWhoseBuffersLeakIsNamed(t *testing.T) {
	staged(t, dat.ConnConfig{}, func(r *rig) {
		pz, err := r.ia.NewPZ()
		require.NoError(r.t, err)
		p, err := pz.NewBufferPool(mem.BufferPoolConfig{Count: 3, Size: 64, Debug: true})
		require.NoError(r.t, err)
		assert.Empty(r.t, r.ask("?format=json").Troubles)
		var leaked []*mem.Buffer
		for b := p.Get(); b != nil; b = p.Get() {
			leaked = append(leaked, b)
		}
		waited := make(chan error)
		go func() {
			b, err := p.Wait(r.t.Context())
			b.Put()
			waited <- err
		}()
		synctest.Wait()
		time.Sleep(leastAge)
		assert.Empty(r.t, r.ask("?format=json").Troubles, "others may give buffers back soon")
		r.wrong("no buffers", p.String(), "1 call waits for a buffer", "holds all 3 buffers", "trouble_test.go")
		for _, b := range leaked {
			b.Put()
		}
		require.NoError(r.t, <-waited)
		time.Sleep(leastAge)
		assert.Empty(r.t, r.ask("?format=json").Troubles)
		require.NoError(r.t, p.Close())
		require.NoError(r.t, pz.Close())
	})
}

func TestPeersThatNobodyAcceptsAreNamed(t *testing.T) {
	staged(t, dat.ConnConfig{}, func(r *rig) {
		_, err := r.ln.Dial(r.ln.Addr(), nil)
		require.NoError(r.t, err)
		r.wrong("not accepted", r.ln.String(), "1 peer waits for this program")
		r.wrong("no consumer", r.ln.String(), "this program does not take connection requests: 1 event has waited")
	})
}

func TestAListenerWithoutPlacesIsNamed(t *testing.T) {
	staged(t, dat.ConnConfig{}, func(r *rig) {
		r.join()
		r.join()
		r.wrong("no places", r.ln.String(), "have taken all 4 places: the next peer is refused; none was so far")
	})
}

func TestAConnectionThatBrokeIsNamedForAWhile(t *testing.T) {
	staged(t, dat.ConnConfig{Depth: 1}, func(r *rig) {
		client, server := r.join()
		here, there := client.LocalAddr().String(), client.RemoteAddr().String()
		for ended := 0; ended < 2; { // the server keeps its buffers, so a message finds no receive
			_ = client.SendBytes([]byte("x"))
			time.Sleep(time.Second)
			for len(r.ln.Events()) > 0 {
				if ev := <-r.ln.Events(); ev.Ended() {
					ended++
				} else {
					require.NotNil(r.t, server.Message(ev))
				}
			}
		}
		r.wrong("broke", client.String(), "BROKEN: no receive was posted at the peer "+there+" for a message from "+here+" here: look at the peer's page, whether it takes no events, keeps its buffers, or posts too few (ERR_RECEIVER_NOT_READY)")
		r.wrong("broke", server.String(), "BROKEN: no receive was posted here, at "+there+", for a message from the peer "+here)
		time.Sleep(fresh)
		assert.Empty(r.t, r.ask("?format=json").Troubles)
	})
}

func TestOfManyTroublesOfAKindAFewAreTold(t *testing.T) {
	now := &seen{Snapshot: dat.Snapshot{At: time.Now()}}
	for i := range 10000 {
		e := ep.EndpointSnapshot{State: connected, Remote: "10.0.0.1:1", Requests: ep.QueueSnapshot{Outstanding: 1, OldestAge: time.Minute}}
		now.Conns = append(now.Conns, dat.ConnSnapshot{ID: uint64(i), Name: fmt.Sprint("c", i), Endpoint: e})
	}
	list := troubles(now, nil)
	require.Len(t, list, ofEach)
	assert.True(t, strings.HasSuffix(list[ofEach-1].Text, "; 9\u202f995 more in the list connections are in trouble"), list[ofEach-1].Text)
	assert.NotContains(t, list[0].Text, "more")
}

func TestOfManyTroublesTheWorstAreTold(t *testing.T) {
	now := &seen{Snapshot: dat.Snapshot{At: time.Now()}}
	for i := range ofEach + 3 {
		e := ep.EndpointSnapshot{State: connected, Remote: "10.0.0.1:1", Requests: ep.QueueSnapshot{Outstanding: 1, OldestAge: time.Duration(i+1) * time.Minute}}
		now.Conns = append(now.Conns, dat.ConnSnapshot{ID: uint64(i), Name: fmt.Sprint("c", i), Endpoint: e})
	}
	var names []string
	for _, t := range troubles(now, nil) {
		names = append(names, t.Name)
	}
	assert.ElementsMatch(t, []string{"c3", "c4", "c5", "c6", "c7"}, names, "the oldest")
}

func TestWhatDevicesCountOfPeersIsTold(t *testing.T) {
	look := func(counts hw.ListenerCounts, overflows uint64) *seen {
		l := dat.ListenerSnapshot{PointSnapshot: ep.PointSnapshot{Name: "L", Backlog: 9, Overflows: overflows, Device: &counts}}
		return &seen{Snapshot: dat.Snapshot{At: time.Now(), Listeners: []dat.ListenerSnapshot{l}}}
	}
	was := look(hw.ListenerCounts{GaveWay: 3, Silent: 2, Descriptors: 1}, 1)
	assert.Empty(t, troubles(was, was), "what has happened before is no trouble now")
	assert.Empty(t, troubles(look(hw.ListenerCounts{}, 0), was), "another listener at the address has counts of its own")
	for text, now := range map[string]*seen{
		"600 TCP connections have brought no request to connect yet; the device drops them":               look(hw.ListenerCounts{HalfOpen: 600, GaveWay: 3, Silent: 2, Descriptors: 1}, 1),
		"7 TCP connections were dropped for bringing no request to connect; this program has":             look(hw.ListenerCounts{GaveWay: 6, Silent: 6, Descriptors: 1}, 1),
		"2 peers were turned away within the last minute, each because one spoke X; the last came from p": look(hw.ListenerCounts{GaveWay: 3, Silent: 4, Descriptors: 1, Foreign: 2, Alike: 2, Spoke: "one spoke X", Stranger: "p"}, 1),
		"2 peers were turned away within the last minute, the last because one spoke Y; the last came":    look(hw.ListenerCounts{GaveWay: 3, Silent: 4, Descriptors: 1, Foreign: 2, Alike: 1, Spoke: "one spoke Y", Stranger: "q"}, 1),
		"4 peers turned away: this process has no descriptor left; raise ulimit -n, or close":             look(hw.ListenerCounts{GaveWay: 3, Silent: 2, Descriptors: 5}, 1),
		"2 requests found the backlog of 9 full":                                                          look(hw.ListenerCounts{GaveWay: 3, Silent: 2, Descriptors: 1}, 3),
	} {
		list := troubles(now, was)
		require.Len(t, list, 1, text)
		assert.Contains(t, list[0].Text, text)
		assert.Equal(t, "L", list[0].Name)
	}
}

func TestWhatTheDispatchersCountIsTold(t *testing.T) {
	look := func(d evd.DispatcherSnapshot) *seen {
		d.Name, d.Owner = "D", "connection 7"
		return &seen{Snapshot: dat.Snapshot{At: time.Now(), Dispatchers: []evd.DispatcherSnapshot{d}}}
	}
	lost := evd.DispatcherSnapshot{QLen: 8}
	lost.Lost = 3
	was := look(evd.DispatcherSnapshot{QLen: 8, Refused: 1, Queued: 4})
	assert.Empty(t, troubles(look(evd.DispatcherSnapshot{QLen: 8, Queued: 5}), look(evd.DispatcherSnapshot{QLen: 8})), "at one look")
	for text, now := range map[string]*seen{
		"takes its messages and completions more slowly than they come: 5 events wait, and there is room for 8": look(evd.DispatcherSnapshot{QLen: 8, Queued: 5, Refused: 1}),
		"2 posts were refused lately, because there was no room for its messages and completions":               look(evd.DispatcherSnapshot{QLen: 8, Refused: 3}),
		"3 events were lost within the last minute, because more":                                               look(lost),
	} {
		if now.Dispatchers[0].Lost > 0 {
			now.Dispatchers[0].Refused = 1
		}
		list := troubles(now, was)
		require.Len(t, list, 1, text)
		assert.Contains(t, list[0].Text, text)
		assert.Equal(t, "connection 7", list[0].Name)
	}
}

func TestASharedQueueIsInTroubleIfItIsEmptyTwiceOrGivenUp(t *testing.T) {
	look := func(q ep.SRQSnapshot) *seen {
		q.Name, q.Endpoints = "S", 2
		return &seen{Snapshot: dat.Snapshot{At: time.Now(), SRQs: []ep.SRQSnapshot{q}}}
	}
	empty, fed := look(ep.SRQSnapshot{}), look(ep.SRQSnapshot{Outstanding: 1})
	assert.Empty(t, troubles(empty, nil))
	assert.Empty(t, troubles(empty, fed))
	list := troubles(empty, empty)
	require.Len(t, list, 1)
	assert.Equal(t, "has no receive for 2 endpoints: the program posts too few", list[0].Text)
	list = troubles(look(ep.SRQSnapshot{Failed: true}), fed)
	require.Len(t, list, 1)
	assert.Equal(t, "the device gave it up, so no message comes for 2 endpoints; close them and it, and make others", list[0].Text)
}

func TestWhatTheDeviceReportsIsToldForAMinute(t *testing.T) {
	look := func(at time.Time, errors dat.AsyncCounters) *seen {
		return &seen{Snapshot: dat.Snapshot{At: at, Device: "mlx5_0", Counters: dat.Counters{Async: errors}}}
	}
	at := time.Now()
	first := look(at, dat.AsyncCounters{Errors: 7})
	require.Empty(t, troubles(first, nil), "they may be old")
	next := look(at.Add(time.Second), dat.AsyncCounters{Errors: 10, Endpoints: 2})
	list := troubles(next, first)
	require.Len(t, list, 1)
	assert.Equal(t, "mlx5_0: the device reported 3 errors within the last minute: 2 of queue pairs, 1 of the device or a port; the log says which, and IA.Async has the events", list[0].Head+": "+list[0].Text)
	later := look(at.Add(59*time.Second), next.Counters.Async)
	require.Len(t, troubles(later, next), 1)
	assert.Empty(t, troubles(look(at.Add(62*time.Second), next.Counters.Async), later))
}

func TestErrorsOfTheDeviceThatNobodyTakesAreNamed(t *testing.T) {
	staged(t, dat.ConnConfig{}, func(r *rig) {
		require.NoError(r.t, r.ia.Async().PostSoftware(1))
		r.wrong("no consumer", asyncErrors, "this program does not take what the device reports of its own accord (IA.Async): 1 event has waited")
	})
}
