package lane

import (
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/bench/mode"
	"godat/ep"
	"godat/evd"
	"godat/hw"
	dat "godat/runtime"
)

// The pool library runs two goroutines of its own from the start.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// carry posts n messages from another goroutine, never more than depth at a time, and
// takes them.
func carry(t *testing.T, l Lane, n, depth int) {
	t.Helper()
	room := make(chan struct{}, depth)
	posted := make(chan struct{})
	go func() {
		defer close(posted)
		for i := range n {
			room <- struct{}{}
			assert.NoError(t, l.Post(i%l.Slots()))
		}
	}()
	var taken int
	require.NoError(t, l.Take(func(slot int) bool {
		assert.Equal(t, taken%l.Slots(), slot)
		taken++
		<-room
		return taken < n
	}))
	assert.Equal(t, n, taken)
	<-posted
}

func TestEveryModeCarriesAllMessagesInOrder(t *testing.T) {
	for _, provider := range []string{"loop", "iwarp:127.0.0.1"} {
		for _, m := range mode.All() {
			t.Run(provider+"/"+m.Name, func(t *testing.T) {
				l, err := NewEndpoints(Config{Provider: provider, Mode: m, Size: 64, Depth: 4})
				require.NoError(t, err)
				carry(t, l, 96, 4)
				carry(t, l, 8, 4) // from slot 0 again
				require.NoError(t, l.Close())
			})
		}
	}
}

func TestEveryModeEchoesAllMessages(t *testing.T) {
	for _, provider := range []string{"loop", "iwarp:127.0.0.1"} {
		for _, m := range mode.All() {
			t.Run(provider+"/"+m.Name, func(t *testing.T) {
				l, err := NewEcho(Config{Provider: provider, Mode: m, Size: 64, Depth: 4})
				require.NoError(t, err)
				carry(t, l, 96, 4)
				carry(t, l, 8, 4)
				require.NoError(t, l.Close())
			})
		}
	}
}

func TestEveryModeTakesTheCompletionsOfWrites(t *testing.T) {
	for _, provider := range []string{"loop", "iwarp:127.0.0.1"} {
		for _, m := range mode.All() {
			t.Run(provider+"/"+m.Name, func(t *testing.T) {
				l, err := NewWrites(Config{Provider: provider, Mode: m, Size: 4096, Depth: 4})
				require.NoError(t, err)
				carry(t, l, 96, 4)
				carry(t, l, 8, 4)
				require.NoError(t, l.Close())
			})
		}
	}
}

func TestEachSetupIsTakenOnce(t *testing.T) {
	lanes := map[string]func() (Lane, error){"net.Conn": func() (Lane, error) { return NewDials(4) }}
	for _, provider := range []string{"loop", "iwarp:127.0.0.1"} {
		lanes[provider] = func() (Lane, error) { return NewSetups(Config{Provider: provider, Depth: 4}) }
	}
	for name, open := range lanes {
		t.Run(name, func(t *testing.T) {
			l, err := open()
			require.NoError(t, err)
			carry(t, l, 2*l.Slots(), 1)
			require.NoError(t, l.Close())
		})
	}
}

func TestAnotherAdapterDialsAServer(t *testing.T) {
	ia, err := dat.Open(t.Context(), "iwarp:127.0.0.1")
	require.NoError(t, err)
	s, err := NewServer(ia, 0, nil)
	require.NoError(t, err)
	for range 2 {
		l, err := DialEcho(Config{Provider: "iwarp:127.0.0.1", Mode: mode.Channel, Size: 64, Depth: 4}, "127.0.0.1", s.Qual())
		require.NoError(t, err)
		carry(t, l, 96, 4)
		require.NoError(t, l.Close())
	}
	require.NoError(t, ia.Close())
	s.Wait()
}

func TestAServerRejectsADialerThatAsksForTooMuch(t *testing.T) {
	ia, err := dat.Open(t.Context(), "iwarp:127.0.0.1")
	require.NoError(t, err)
	why := make(chan error, 1)
	s, err := NewServer(ia, 0, func(err error) { why <- err })
	require.NoError(t, err)
	for _, c := range []Config{{Size: maxSize + 1, Depth: 1}, {Size: maxSize, Depth: maxBytes/maxSize + 1}} {
		c.Provider, c.Mode = "iwarp:127.0.0.1", mode.Poll
		_, err = DialEcho(c, "127.0.0.1", s.Qual())
		require.Error(t, err)
		require.ErrorContains(t, err, "serve says", "the dialer learns it, too")
		require.ErrorContains(t, err, "a server has up to")
		require.ErrorContains(t, <-why, "a server has up to")
	}
	require.NoError(t, ia.Close())
	s.Wait()
}

// A version before this one rejects by silence.
func TestADialerThatIsRejectedWithoutAWordIsToldWhatMayServeThere(t *testing.T) {
	ia, err := dat.Open(t.Context(), "iwarp:127.0.0.1")
	require.NoError(t, err)
	requests, err := ia.NewDispatcher(evd.Config{QLen: 16})
	require.NoError(t, err)
	psp, err := ia.NewPSP(ep.PSPConfig{Dispatcher: requests})
	require.NoError(t, err)
	dialed := make(chan error, 1)
	go func() {
		_, err := DialEcho(Config{Provider: "iwarp:127.0.0.1", Mode: mode.Poll, Size: 64, Depth: 1}, "127.0.0.1", psp.Qual())
		dialed <- err
	}()
	ev, _, err := requests.Wait(t.Context(), 1)
	require.NoError(t, err)
	require.NoError(t, ep.RequestOf(ev).Reject(nil))
	require.ErrorContains(t, <-dialed, "another version of this program serves there")
	require.NoError(t, ia.Close())
}

func TestAHelloIsReadBack(t *testing.T) {
	for _, m := range mode.All() {
		h, err := parseHello(append(hello{m, 4096, 16}.append(nil), 0, 0))
		require.NoError(t, err)
		assert.Equal(t, m.Name, h.mode.Name)
		assert.Equal(t, []int{4096, 16}, []int{h.size, h.depth})
	}
}

func FuzzHello(f *testing.F) {
	f.Add(hello{mode.Poll, 64, 1}.append(nil))
	f.Add([]byte{1, 200, 0, 0, 0, 1, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := parseHello(b); err == nil {
			assert.LessOrEqual(t, h.size*h.depth, maxBytes)
			assert.Equal(t, b[:helloLen], h.append(nil))
		}
	})
}

func TestMessagesGoOverManyConnectionsInTurns(t *testing.T) {
	l, err := NewEndpoints(Config{Provider: "loop", Mode: mode.Channel, Size: 64, Depth: 4, Conns: 5})
	require.NoError(t, err)
	assert.Equal(t, 10, l.Slots())
	carry(t, l, 100, 4)
	require.NoError(t, l.Close())
}

func TestEveryAnchorCarriesAllMessagesInOrder(t *testing.T) {
	all := map[string][]Anchor{"one way": Anchors(), "round trip": RoundTrips(), "copies": Copies()}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		carryAnchors(t, name, all[name])
	}
}

func carryAnchors(t *testing.T, kind string, list []Anchor) {
	for _, a := range list {
		t.Run(kind+"/"+a.Name, func(t *testing.T) {
			l, err := a.Open(Config{Size: 64, Depth: 4})
			require.NoError(t, err)
			carry(t, l, 96, 4)
			carry(t, l, 8, 4)
			require.NoError(t, l.Close())
		})
	}
}

// carryOf has producers that post n messages each, never more than their part of depth at
// a time, and takes them.
func carryOf(t *testing.T, l Lane, producers, n, depth int) {
	t.Helper()
	slots := l.Slots() / producers
	room := make([]chan struct{}, producers)
	var posted sync.WaitGroup
	for p := range producers {
		room[p] = make(chan struct{}, depth/producers)
		posted.Go(func() {
			for i := range n {
				room[p] <- struct{}{}
				assert.NoError(t, l.Post(p*slots+i%slots))
			}
		})
	}
	taken := make([]int, producers)
	total := 0
	require.NoError(t, l.Take(func(slot int) bool {
		p := slot / slots
		assert.Equal(t, taken[p]%slots, slot%slots, "the messages of a producer keep their order")
		taken[p]++
		total++
		<-room[p]
		return total < producers*n
	}))
	posted.Wait()
}

func TestTheMessagesOfSeveralProducersAreToldApart(t *testing.T) {
	const producers, depth = 3, 12
	open := map[string]func(Config) (Lane, error){}
	for _, provider := range []string{"loop", "iwarp:127.0.0.1"} {
		for _, m := range mode.All() {
			open[provider+"/"+m.Name] = func(c Config) (Lane, error) {
				c.Provider, c.Mode = provider, m
				return NewEndpoints(c)
			}
		}
	}
	for _, a := range Anchors() {
		open[a.Name] = a.Open
	}
	for name, open := range open {
		t.Run(name, func(t *testing.T) {
			l, err := open(Config{Size: 64, Depth: depth, Producers: producers})
			require.NoError(t, err)
			carryOf(t, l, producers, 48, depth)
			carryOf(t, l, producers, 8, depth)
			require.NoError(t, l.Close())
		})
	}
}

func TestASendThatFindsNoRoomWaitsForSome(t *testing.T) {
	l, err := NewEndpoints(Config{Provider: "loop", Mode: mode.Poll, Size: 64, Depth: 1})
	require.NoError(t, err)
	// A peer without receives holds up all sends, until it posts some.
	quiet, err := l.ia.NewDispatcher(evd.Config{QLen: 16})
	require.NoError(t, err)
	pz, err := l.ia.NewPZ()
	require.NoError(t, err)
	attr := &ep.Attr{MaxRequestDTOs: 2, MaxRecvDTOs: 4}
	cfg := ep.Config{PZ: pz, Recv: quiet, Request: quiet, Conn: quiet, Attr: attr}
	from, err := l.ia.NewEndpoint(cfg)
	require.NoError(t, err)
	to, err := l.ia.NewEndpoint(cfg)
	require.NoError(t, err)
	psp, err := l.ia.NewPSP(ep.PSPConfig{Dispatcher: quiet})
	require.NoError(t, err)
	require.NoError(t, from.Connect(ep.ConnectConfig{Addr: l.ia.Attr().Address, Qual: psp.Qual()}))
	require.NoError(t, established(quiet, to, 2))
	lmr, err := pz.Alloc(64, hw.AllPrivileges)
	require.NoError(t, err)
	seg := lmr.Segment(0, 8)
	for range 2 {
		require.NoError(t, send(from, 0, seg))
	}
	require.ErrorIs(t, from.PostSend(0, hw.Suppress, seg), noRoom)
	posted := make(chan error, 1)
	go func() { posted <- send(from, 0, seg) }()
	for range 3 {
		require.NoError(t, to.PostRecv(0, 0, seg))
	}
	require.NoError(t, <-posted)
	require.NoError(t, l.Close())
}

func TestAProviderThatIsNotThereIsAnError(t *testing.T) {
	_, err := NewEndpoints(Config{Provider: "nothing", Mode: mode.Poll, Size: 64, Depth: 4})
	assert.Error(t, err)
}

func TestAConnectionIsFullWhenItsBuffersAre(t *testing.T) {
	l, err := NewTCP(Config{Size: 64, Depth: 16})
	require.NoError(t, err)
	assert.False(t, l.PostBlocks(16))
	assert.True(t, l.PostBlocks(1<<20))
	require.NoError(t, l.Close())
}
