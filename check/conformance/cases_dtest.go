package conformance

import (
	"bytes"
	"slices"
	"sync"
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

var dtestCases = []Case{
	{ID: "DT-1", Claim: "everything a connection needs is made, and freed in reverse", run: func(r *rig) {
		n := r.node()
		e, s := n.end(), n.listen()
		r.ok(s.psp.Close(), s.cr.Close(), e.ep.Close())
		for _, d := range []*evd.Dispatcher{e.req, e.recv, e.conn} {
			require.NoError(r, d.Close())
		}
		r.ok(e.mem.Free(), n.pz.Close(), n.ia.CloseGraceful())
	}},
	{ID: "DT-6", Claim: "receives posted before the connection are consumed after it, in order", run: dt6},
	{ID: "DT-7", Claim: "48 bytes of private data go each way with the connection", run: dt7},
	{ID: "DT-8", Claim: "48 bytes of private data come with a rejection, and the endpoint is usable again", run: dt8},
	{ID: "DT-9", Claim: "each side sends the other the name of its memory", run: dt9},
	{ID: "DT-10", Claim: "of a burst of suppressed writes each tenth is seen", run: dt10},
	{ID: "DT-11", Claim: "what was written is there when the message after it is", run: dt11},
	{ID: "DT-12", Claim: "four reads of a buffer", run: dt12},
	{ID: "DT-13", Claim: "a hundred messages back and forth, compared", run: dt13},
	{ID: "DT-14", Claim: "writes back and forth of all sizes around powers of two, compared", run: dt14},
	{ID: "DT-15", Claim: "a stream of writes one way", run: dt15},
	{ID: "DT-16", Claim: "all of it through one CNO on each side", run: func(r *rig) {
		r.notify = make(map[*dat.IA]*evd.CNO)
		r.take = func(d *evd.Dispatcher) event.Event {
			p := get(r, d.Query)
			for {
				if ev, ok := r.dequeue(d); ok {
					return ev
				}
				require.NoError(r, errorOf(p.CNO.Wait(r.soon())), "the trigger did not come")
			}
		}
		dtest(r)
	}},
	{ID: "DT-17", Claim: "all of it by polling", run: func(r *rig) {
		r.take = r.poll
		dtest(r)
	}},
	{ID: "DT-18", Claim: "an accept that comes after the time-out ends in an error or a disconnect", run: func(r *rig) {
		n, server := r.node(), r.node().end()
		s := server.node.listen()
		at := s.at()
		// An attempt may time out before the server has its request.
		var cr *ep.CR
		for at.Timeout = 5 * time.Millisecond; cr == nil; at.Timeout *= 2 {
			require.Less(r, at.Timeout, patience, "the server gets no request")
			client := n.end()
			require.NoError(r, client.ep.Connect(at))
			client.connection(event.TimedOut)
			require.Equal(r, ep.Disconnected, client.ep.State())
			if ev, ok := r.dequeue(s.cr); ok {
				cr = ep.RequestOf(ev)
			}
		}
		if err := cr.Accept(server.ep, nil); err != nil {
			require.Equal(r, ep.Unconnected, server.ep.State())
			r.none(server.conn)
			return
		}
		ev := server.rig.next(server.conn)
		if ev.Number == event.Established {
			ev = server.rig.next(server.conn)
		}
		assert.Contains(r, []event.Number{event.AcceptCompletionError, event.Disconnected, event.Broken}, ev.Number)
		r.until("the end", func() bool { return server.ep.State() == ep.Disconnected })
	}},
	{ID: "DT-19", Claim: "each side gets one event of a disconnect", run: dt19},
	{ID: "DC-1", Claim: "many connections in bursts through one service point", run: func(r *rig) { dc(r, false) }},
	{ID: "DC-2", Claim: "a service point for each connection", run: func(r *rig) { dc(r, true) }},
	{ID: "DC-3", Claim: "many connections, polled for", run: func(r *rig) { r.take = r.poll; dc(r, false) }},
	// DC-6 connects many endpoints to one service point at once; one goroutine accepts
	// them all.
	{ID: "DC-6", Claim: "connections from many goroutines at once", run: func(r *rig) {
		n := r.p.Scale.of(64, 4)
		server, client := r.node(), r.node()
		s := server.listenOn(ep.PSPConfig{Dispatcher: server.dispatcher(n, event.StreamCR)})
		at := s.at()
		var clients, servers []*end
		for range n {
			clients, servers = append(clients, client.end()), append(servers, server.end())
		}
		var wg sync.WaitGroup
		for _, c := range clients {
			wg.Go(func() { assert.NoError(r, c.ep.Connect(at)) })
		}
		for _, e := range servers {
			require.NoError(r, s.request().Accept(e.ep, nil))
		}
		wg.Wait()
		for i := range clients {
			clients[i].established()
			servers[i].established()
		}
	}},
}

func dt6(r *rig) {
	client, server := r.node().end(), r.node().end()
	for i := range uint64(3) {
		require.NoError(r, server.ep.PostRecv(i, 0, server.mem.Segment(int(i)*64, 64)))
	}
	r.connect(client, server)
	for i := range uint64(3) {
		client.mem.Bytes()[i] = byte('a' + i)
		require.NoError(r, client.ep.PostSend(i, 0, client.mem.Segment(int(i), 1)))
	}
	for i := range uint64(3) {
		client.done(client.req, i, hw.StatusSuccess)
		server.done(server.recv, i, hw.StatusSuccess)
		assert.Equal(r, byte('a'+i), server.mem.Bytes()[i*64])
	}
}

func dt7(r *rig) {
	client, server := r.node().end(), r.node().end()
	cr, p := server.node.listen().askedBy(client, private(48, 1))
	carries(r, private(48, 1), p.Private)
	require.NoError(r, cr.Accept(server.ep, private(48, 2)))
	carries(r, private(48, 2), r.privateOf(client.established()))
	server.established()
}

func dt8(r *rig) {
	client := r.node().end()
	s := r.node().listen()
	require.NoError(r, client.ep.Connect(s.at()))
	require.NoError(r, s.request().Reject(private(48, 3)))
	carries(r, private(48, 3), r.privateOf(client.connection(event.PeerRejected)))
	require.Equal(r, ep.Disconnected, client.ep.State())
	require.NoError(r, client.ep.Reset())
	require.Equal(r, ep.Unconnected, client.ep.State())
	r.connect(client, r.node().end())
}

// tell sends the name of from's memory to to, and returns the name that to has
// received.
func tell(from, to *end) mem.RemoteSegment {
	b, err := from.mem.Remote(0, endMem).AppendBinary(nil)
	require.NoError(from.rig, err)
	copy(from.mem.Bytes(), b)
	say(from, to, mem.RemoteSegmentSize)
	remote, err := mem.ParseRemoteSegment(to.mem.Bytes())
	require.NoError(to.rig, err)
	return remote
}

func dt9(r *rig) {
	client, server := r.pair()
	assert.Equal(r, server.mem.Remote(0, endMem), tell(server, client))
	assert.Equal(r, client.mem.Remote(0, endMem), tell(client, server))
}

func dt10(r *rig) {
	const each = 10
	burst := each * r.p.Scale.of(80, 4)
	client, server := r.pair(attr(func(a *ep.Attr) { a.MaxRequestDTOs = 2 * each }))
	seen := 0
	for i := 1; i <= burst; i++ {
		flags := hw.Suppress
		if i%each == 0 {
			flags = 0
		}
		require.NoError(r, client.ep.PostRDMAWrite(uint64(i), flags, server.mem.Remote(0, 1024), client.mem.Segment(0, 1024)))
		if i%each == 0 {
			client.done(client.req, uint64(i), hw.StatusSuccess)
			seen++
		}
	}
	assert.Equal(r, burst/each, seen)
	r.none(client.req)
}

func dt11(r *rig) {
	client, server := r.pair()
	for i := range r.p.Scale.of(800, 20) {
		fill := bytes.Repeat([]byte{byte(i + 1)}, 4096)
		copy(client.mem.Bytes(), fill)
		require.NoError(r, server.ep.PostRecv(uint64(i), 0, server.mem.Segment(8192, 64)))
		require.NoError(r, client.ep.PostRDMAWrite(1, hw.Suppress, server.mem.Remote(0, 4096), client.mem.Segment(0, 4096)))
		require.NoError(r, client.ep.PostSend(2, hw.Suppress, client.mem.Segment(0, 16)))
		assert.EqualValues(r, 16, server.done(server.recv, uint64(i), hw.StatusSuccess).Length)
		require.True(r, bytes.Equal(fill, server.mem.Bytes()[:4096]), "round %d", i)
		// The client may fill the buffer again when a later request has completed.
		client.completes(3, client.ep.PostRDMAWrite(3, 0, mem.RemoteSegment{}))
	}
}

func dt12(r *rig) {
	client, server := r.pair()
	for i := range 32 << 10 {
		server.mem.Bytes()[i] = byte(i*7 + 1)
	}
	for i := range 4 {
		require.NoError(r, client.ep.PostRDMARead(0x9999, 0, server.mem.Remote(0, 8192), client.mem.Segment(i*8192, 8192)))
	}
	for i := range 4 {
		ev := client.done(client.req, 0x9999, hw.StatusSuccess)
		assert.EqualValues(r, 8192, ev.Length)
		require.True(r, bytes.Equal(server.mem.Bytes()[:8192], client.mem.Bytes()[i*8192:(i+1)*8192]))
	}
}

func dt13(r *rig) {
	client, server := r.pair()
	const size = 2048
	for i := range uint64(r.p.Scale.of(100, 10)) {
		for _, way := range []struct {
			from, to *end
			fill     byte
		}{{client, server, 0x55}, {server, client, 0xAA}} {
			want := bytes.Repeat([]byte{way.fill}, size)
			copy(way.from.mem.Bytes(), want)
			require.NoError(r, way.to.ep.PostRecv(i, 0, way.to.mem.Segment(size, size)))
			way.from.sends(i, size)
			way.to.done(way.to.recv, i, hw.StatusSuccess)
			require.True(r, bytes.Equal(want, way.to.mem.Bytes()[size:2*size]))
			clear(way.to.mem.Bytes()[size : 2*size])
		}
	}
}

func dt14(r *rig) {
	client, server := r.pair()
	fill := byte(0)
	for n := 1; n <= endMem/2; n *= 2 {
		for _, size := range slices.Compact([]int{max(n-1, 1), n, n + 1}) {
			for _, way := range [][2]*end{{client, server}, {server, client}} {
				from, to := way[0], way[1]
				fill++
				want := bytes.Repeat([]byte{fill}, size)
				copy(from.mem.Bytes(), want)
				from.completes(1, from.ep.PostRDMAWrite(1, 0, to.mem.Remote(100, size), from.mem.Segment(0, size)))
				say(from, to, 0)
				require.True(r, bytes.Equal(want, to.mem.Bytes()[100:100+size]), "%d bytes", size)
			}
		}
	}
}

func dt15(r *rig) {
	client, server := r.pair()
	outstanding := 0
	for i := range uint64(r.p.Scale.of(4000, 100)) {
		if outstanding == 16 {
			client.done(client.req, i-16, hw.StatusSuccess)
			outstanding--
		}
		require.NoError(r, client.ep.PostRDMAWrite(i, 0, server.mem.Remote(0, 4096), client.mem.Segment(0, 4096)))
		outstanding++
	}
	for range outstanding {
		require.Equal(r, hw.StatusSuccess, client.rig.next(client.req).Status)
	}
}

// dtest runs everything that the C program dtest does between connecting and
// disconnecting.
func dtest(r *rig) {
	for _, part := range []func(*rig){dt6, dt7, dt8, dt9, dt10, dt11, dt12, dt13, dt14, dt15, dt19} {
		part(r)
	}
}

func dt19(r *rig) {
	for _, how := range []ep.CloseFlags{ep.Abrupt, ep.Graceful} {
		client, server := r.pair()
		client.disconnect(how)
		server.connection(event.Disconnected)
		require.NoError(r, server.ep.Disconnect(ep.Abrupt))
		r.none(client.conn)
		r.none(server.conn)
	}
}

// dc requires the events of many connections, and no others.
func dc(r *rig, onePointEach bool) {
	burst := r.p.Scale.of(100, 4)
	server, client := r.node(), r.node()
	one := server.listen()
	total := max(burst, r.p.Scale.of(1000, burst)/burst*burst)
	began := time.Now()
	for range total / burst {
		conn, peer := client.dispatcher(2*burst, event.StreamConnection), server.dispatcher(2*burst, event.StreamConnection)
		var clients, servers []*ep.Endpoint
		for range burst {
			c := client.endpoint(ep.Config{PZ: client.pz, Conn: conn})
			s := one
			if onePointEach {
				s = server.listen()
			}
			require.NoError(r, c.Connect(s.at()))
			ep := server.endpoint(ep.Config{PZ: server.pz, Conn: peer})
			require.NoError(r, s.request().Accept(ep, nil))
			clients, servers = append(clients, c), append(servers, ep)
			if onePointEach {
				require.NoError(r, s.psp.Close())
			}
		}
		for _, d := range []*evd.Dispatcher{conn, peer} {
			for range burst {
				require.Equal(r, event.Established, r.next(d).Number)
			}
		}
		for _, c := range clients {
			require.NoError(r, c.Disconnect(ep.Abrupt))
		}
		for _, d := range []*evd.Dispatcher{conn, peer} {
			for range burst {
				require.Equal(r, event.Disconnected, r.next(d).Number)
			}
			r.none(d)
		}
		for i := range clients {
			require.NoError(r, clients[i].Close())
			require.NoError(r, servers[i].Close())
		}
	}
	r.Logf("%.0f connections/s", float64(total)/time.Since(began).Seconds())
}
