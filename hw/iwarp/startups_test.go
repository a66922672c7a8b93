package iwarp

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// Any host that reaches a port can connect to it and say nothing.

// ask sends a request.
func (s *script) ask() {
	p := plain()
	s.write(p.Append(nil))
}

func TestSilentConnectionsDoNotKeepAnotherOut(t *testing.T) {
	counts := []int{24, 1000}
	if testing.Short() {
		counts = []int{24, 300} // still more than one address may have
	}
	for _, silent := range counts {
		t.Run(strconv.Itoa(silent), func(t *testing.T) {
			n := newNode(t, New(Config{}), map[string]string{"mpa": "1h"})
			ln, requests := n.listen(hw.ListenConfig{Backlog: 8})
			for range silent {
				dialScript(t, ln)
			}
			good := dialScript(t, ln)
			good.ask()
			require.NoError(t, (<-requests).Reject([]byte("no")))
			assert.Equal(t, "no", string(good.reply().Private))
			u := ln.(*listener).startups
			u.mu.Lock()
			assert.LessOrEqual(t, u.byAge.Len(), leastHalfOpenIP)
			u.mu.Unlock()
		})
	}
}

// goneAfter waits for the end of a connection, and returns how long that took.
func (s *script) goneAfter(began time.Time) time.Duration {
	s.tb.Helper()
	_ = s.conn.SetDeadline(time.Time{})
	s.eof()
	return time.Since(began)
}

func TestTheOldestSilentConnectionGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways := &pipes{}
		n := newNode(t, New(ways.config()), map[string]string{"halfopen": "3", "mpa": mpaTime.String()})
		ln, requests := n.listen(hw.ListenConfig{})
		began := time.Now()
		var scripts []*script
		for range 4 {
			scripts = append(scripts, pipeScript(t, ways, ln))
		}
		assert.Equal(t, headStart, scripts[0].goneAfter(began), "it had its head start")
		counts := ln.(hw.CountingListener).Counts
		assert.Equal(t, hw.ListenerCounts{HalfOpen: 3, GaveWay: 1}, counts())
		for _, s := range scripts[1:] { // the others did not have to give way
			s.ask()
			require.NoError(t, (<-requests).Reject(nil))
			assert.True(t, s.reply().Reject)
		}
		assert.Equal(t, headStart, time.Since(began))
		assert.Equal(t, hw.ListenerCounts{GaveWay: 1}, counts())
		silent := pipeScript(t, ways, ln)
		assert.Equal(t, mpaTime, silent.goneAfter(time.Now()))
		assert.Equal(t, hw.ListenerCounts{GaveWay: 1, Silent: 1}, counts())
	})
}

// A connection whose request has come, and has only not been read yet, is not silent.
func TestManyInitiatorsThatConnectAtOnceAreAllServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 100
		ways := &pipes{}
		n := newNode(t, New(ways.config()), map[string]string{"halfopen": "3"})
		ln, requests := n.listen(hw.ListenConfig{})
		var wg sync.WaitGroup
		for range all {
			wg.Go(func() {
				s := pipeScript(t, ways, ln)
				s.ask()
				assert.True(t, s.reply().Reject)
			})
		}
		for range all {
			require.NoError(t, (<-requests).Reject(nil))
		}
		wg.Wait()
	})
}

// A connection whose request waits in its socket is not silent either, however old the
// connection is.
func TestAConnectionWhoseRequestHasComeDoesNotGiveWay(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // what a socket holds is not known
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	connect := func() (near, far net.Conn) {
		near, err := net.Dial("tcp", ln.Addr().String())
		require.NoError(t, err)
		far, err = ln.Accept()
		require.NoError(t, err)
		t.Cleanup(func() { _, _ = near.Close(), far.Close() })
		return near, far
	}
	set := defaultSettings()
	set.halfOpen = 2
	u := newStartups(&set, &hw.ListenConfig{})
	near, far := connect()
	first, _ := u.enter(far)
	_, silent := connect()
	second, _ := u.enter(silent)
	first.since, second.since = time.Time{}, time.Time{}.Add(time.Hour)
	_, err = near.Write([]byte("MPA ID"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return unread(far) }, time.Minute, time.Millisecond)

	_, late := connect()
	third, _ := u.enter(late)
	require.NotNil(t, third, "the second one is silent and gives way")
	assert.NotNil(t, first.place)
	assert.Nil(t, second.place)

	third.since = time.Time{}
	_, err = far.Read(make([]byte, 6))
	require.NoError(t, err)
	_, last := connect()
	fourth, _ := u.enter(last)
	require.NotNil(t, fourth, "what the first one had sent was read, and it is silent now")
	assert.Nil(t, first.place)
}

func TestAConnectionWaitsWhileAllOthersHaveSentTheirRequests(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // what a socket holds is not known
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	near, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer near.Close()
	far, err := ln.Accept()
	require.NoError(t, err)
	defer far.Close()
	set := defaultSettings()
	set.halfOpen = 1
	u := newStartups(&set, &hw.ListenConfig{})
	first, _ := u.enter(far)
	first.since = time.Time{}
	_, err = near.Write([]byte("MPA ID"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return unread(far) }, time.Minute, time.Millisecond)
	s, wait := u.enter(near)
	assert.Nil(t, s)
	assert.Equal(t, headStart, wait)
	u.end(first, true)
	s, _ = u.enter(near)
	assert.NotNil(t, s)
}

func TestTheBoundsOfStartupsFollowTheBacklog(t *testing.T) {
	for _, c := range []struct {
		set                   settings
		backlog, most, mostIP int
	}{
		{settings{}, 0, 1024, 256},
		{settings{}, 200, 1024, 256},
		{settings{}, 1000, 4000, 1000},
		{settings{}, 1 << 20, 1 << 20, 1 << 20},
		{settings{halfOpen: 3, halfOpenIP: 2}, 1000, 3, 2},
	} {
		most, mostIP := c.set.startupsOf(c.backlog)
		assert.Equal(t, []int{c.most, c.mostIP}, []int{most, mostIP}, "%+v", c)
	}
}

func TestAConnectionThatGivesWayIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways := &pipes{}
		n := newNode(t, New(ways.config()), map[string]string{"halfopen": "2", "mpa": mpaTime.String()})
		dropped := make(chan *hw.Cause, 1)
		ln, _ := n.listen(hw.ListenConfig{OnDrop: func(c *hw.Cause) { dropped <- c }})
		began := time.Now()
		var scripts []*script
		for range 3 {
			scripts = append(scripts, pipeScript(t, ways, ln))
		}
		scripts[0].goneAfter(began)
		assert.ErrorContains(t, <-dropped, "halfopen")
		for _, s := range scripts[1:] {
			s.goneAfter(began)
		}
		assert.Empty(t, dropped, "the others had their time")
	})
}

// What the program does when a connection was dropped may ask how many there were.
func TestAReportOfADropMayAskForTheCounts(t *testing.T) {
	for name, c := range map[string]struct {
		octets []byte
		want   string
	}{
		"gave way": {nil, "halfopen"},
		"foreign":  {[]byte("GET / HTTP/1.1"), "HTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, New(Config{}), map[string]string{"halfopen": "1"})
			asked := make(chan string, 1)
			var ln hw.Listener
			made := make(chan struct{})
			ln, _ = n.listen(hw.ListenConfig{OnDrop: func(c *hw.Cause) {
				<-made
				counted := make(chan struct{})
				go func() {
					_ = ln.(hw.CountingListener).Counts()
					close(counted)
				}()
				select {
				case <-counted:
					asked <- c.Text
				case <-time.After(patience):
					asked <- "the report holds a lock"
				}
			}})
			close(made)
			for range 2 {
				conn, err := net.Dial("tcp", ln.Addr().String())
				require.NoError(t, err)
				defer func() { require.NoError(t, conn.Close()) }()
				_, err = conn.Write(c.octets)
				require.NoError(t, err)
			}
			assert.Contains(t, <-asked, c.want)
		})
	}
}

// addressed is a listener that gives its connections the addresses of peers in turn.
type addressed struct {
	*pipeListener
	from []string
}

type addressedConn struct {
	net.Conn
	peer net.Addr
}

func (c addressedConn) RemoteAddr() net.Addr { return c.peer }

func (a *addressed) Accept() (net.Conn, error) {
	c, err := a.pipeListener.Accept()
	if err != nil {
		return nil, err
	}
	host := a.from[0]
	a.from = a.from[1:]
	return addressedConn{c, name(net.JoinHostPort(host, "1"))}, nil
}

func TestEachAddressHasItsShareOfSilentConnections(t *testing.T) {
	for _, c := range []struct {
		name string
		from []string
		gone int // index of the connection that gives way
	}{
		{"one address", []string{"192.0.2.1", "192.0.2.1", "192.0.2.1"}, 0},
		{"two addresses", []string{"192.0.2.2", "192.0.2.1", "192.0.2.1", "192.0.2.1"}, 1},
		{"one network of IPv6", []string{"2001:db8::1", "2001:db8::2", "2001:db8::3"}, 0},
		{"two networks", []string{"2001:db8:1::1", "2001:db8::2", "2001:db8::3", "2001:db8::4"}, 1},
		{"one host with a name", []string{"client", "client", "client"}, 0},
		{"two hosts with names", []string{"other", "client", "client", "client"}, 1},
		{"IPv4 in IPv6", []string{"::ffff:192.0.2.2", "192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ways := &pipes{}
				cfg := ways.config()
				cfg.Listen = func(addr string) (net.Listener, error) {
					ln, err := ways.listen(addr)
					if err != nil {
						return nil, err
					}
					return &addressed{ln.(*pipeListener), c.from}, nil
				}
				n := newNode(t, New(cfg), map[string]string{"halfopenip": "2", "mpa": mpaTime.String()})
				ln, _ := n.listen(hw.ListenConfig{})
				began := time.Now()
				var scripts []*script
				for range c.from {
					scripts = append(scripts, pipeScript(t, ways, ln))
				}
				assert.Equal(t, headStart, scripts[c.gone].goneAfter(began))
				for i, s := range scripts {
					if i != c.gone {
						assert.GreaterOrEqual(t, s.goneAfter(began), mpaTime, "connection %d", i)
					}
				}
			})
		})
	}
}

// closing is a connection that calls a function before it sets each deadline.
type closing struct {
	net.Conn
	before func()
}

func (c *closing) SetDeadline(t time.Time) error {
	if t.After(past) {
		c.before()
	}
	return c.Conn.SetDeadline(t)
}

// The listener's Close begins while the connection's first deadline is being set. It has
// passed this connection before the deadline is set, unless it has to wait for that.
func TestAConnectionThatComesWhileItsListenerClosesDoesNotDelayThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ln hw.Listener
		var once sync.Once
		closed := make(chan error, 1)
		shut := func() {
			u, held := ln.(*listener).startups, false
			once.Do(func() {
				if held = !u.mu.TryLock(); !held {
					u.mu.Unlock()
				}
				go func() { closed <- ln.Close() }()
			})
			for begun := held; !begun; runtime.Gosched() {
				u.mu.Lock()
				begun = u.closed
				u.mu.Unlock()
			}
		}
		ways := &pipes{}
		ways.wrap = func(c net.Conn) net.Conn { return &closing{c, shut} }
		n := newNode(t, New(ways.config()), map[string]string{"mpa": mpaTime.String()})
		ln, _ = n.listen(hw.ListenConfig{})
		began := time.Now()
		conn, err := ways.dial(context.Background(), "here:"+portText(ln))
		require.NoError(t, err)
		require.NoError(t, <-closed)
		assert.Zero(t, time.Since(began))
		_ = conn.Close()
	})
}

// Refused peers that do not close their connections keep no more connections here than
// silent peers do.
func TestRefusedConnectionsAreKeptInBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const kept, all = 3, 10
		ways := &pipes{wrap: halved}
		n := newNode(t, New(ways.config()), map[string]string{"halfopen": strconv.Itoa(kept), "linger": lingerTime.String()})
		ln, requests := n.listen(hw.ListenConfig{})
		began := time.Now()
		var scripts []*script
		for range all {
			s := pipeScript(t, ways, ln)
			s.ask()
			require.NoError(t, (<-requests).Reject([]byte("no")))
			assert.Equal(t, "no", string(s.reply().Private))
			scripts = append(scripts, s)
			synctest.Wait()
		}
		for i := range scripts { // the last ones were closed at once
			want := time.Duration(0)
			if i >= all-kept {
				want = lingerTime
			}
			assert.Equal(t, want, scripts[all-1-i].goneAfter(began))
		}
	})
}

// nowhere is a listener with that address.
type nowhere struct {
	net.Listener
	at net.Addr
}

func (l nowhere) Addr() net.Addr { return l.at }

// name is an address of a network of the program's own.
type name string

func (name) Network() string  { return "names" }
func (n name) String() string { return string(n) }

// The listener's qualifier is the port of its address, whatever stands before it.
func TestAListenerHasThePortOfItsAddressBehindANameToo(t *testing.T) {
	for address, want := range map[string]uint64{"server:1001": 1001, "192.0.2.1:1001": 1001, "[::1]:1001": 1001, "": 7, "@socket": 7, "server:http": 7} {
		ways := &pipes{}
		cfg := ways.config()
		cfg.Listen = func(addr string) (net.Listener, error) {
			ln, err := ways.listen(addr)
			return nowhere{ln, name(address)}, err
		}
		ln, err := newNode(t, New(cfg), nil).dev.Listen(hw.ListenConfig{Qual: 7, OnRequest: func(hw.Request) bool { return false }})
		require.NoError(t, err)
		assert.Equal(t, want, ln.Qual(), address)
		require.NoError(t, ln.Close())
	}
}

func TestAListenerTellsAnotherProtocolByAPieceOfIt(t *testing.T) {
	for first, want := range map[string]string{"G": spokeHTTP, "PO": spokeHTTP, "\x16": spokeTLS, "SSH-": spokeOther, "M": ""} {
		ln, _ := newNode(t, New(Config{}), nil).listen(hw.ListenConfig{})
		peer := dialScript(t, ln)
		peer.write([]byte(first))
		require.NoError(t, peer.conn.(*net.TCPConn).CloseWrite())
		peer.eof() // the listener counts before it closes
		counts := ln.(hw.CountingListener).Counts()
		assert.Equal(t, want, counts.Spoke, "%q", first)
		if want != "" {
			assert.Equal(t, peer.conn.LocalAddr().String(), counts.Stranger)
			assert.EqualValues(t, 1, counts.Alike)
		}
	}
}

func TestAShortRequestOfAnotherProtocolIsToldBeforeItsTimeIsOver(t *testing.T) {
	ln, _ := newNode(t, New(Config{}), map[string]string{"mpa": "1h"}).listen(hw.ListenConfig{})
	for i, first := range []string{"GET /\r\n\r\n", "GET /\r\n\r\n", "EHLO me\r\n"} {
		peer := dialScript(t, ln)
		peer.write([]byte(first))
		peer.eof()
		assert.EqualValues(t, []int{1, 2, 1}[i], ln.(hw.CountingListener).Counts().Alike)
	}
	assert.EqualValues(t, 3, ln.(hw.CountingListener).Counts().Foreign)
}

func TestAFailedStartUpOfTLSSaysWhichEndDoesNotTakeWhat(t *testing.T) {
	for said, want := range map[string]string{
		"tls: first record does not look like a TLS handshake": spokePlain,
		"remote error: tls: bad certificate":                   refusesHere,
		"tls: failed to verify certificate: x509: unknown":     refusedHere,
	} {
		assert.Equal(t, want, spoke(nil, errors.New(said)))
	}
}
