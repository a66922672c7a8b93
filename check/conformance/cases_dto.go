package conformance

import (
	"bytes"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

var dtoCases = []Case{
	{ID: "DTO-1", Claim: "each direction completes in the order posted, whatever was posted", run: func(r *rig) {
		client, server := r.pair(attr(func(a *ep.Attr) { a.MaxRequestDTOs, a.MaxRecvDTOs = 64, 64 }))
		const rounds = 12
		server.receives(rounds)
		remote, seg := server.mem.Remote(4096, 64), client.mem.Segment(0, 64)
		posts := []func(uint64) error{
			func(c uint64) error { return client.ep.PostRDMARead(c, 0, remote, seg) },
			func(c uint64) error { return client.ep.PostSend(c, 0, seg) },
			func(c uint64) error { return client.ep.PostRDMAWrite(c, 0, remote, seg) },
		}
		for i := range uint64(3 * rounds) {
			require.NoError(r, posts[i%3](i))
		}
		ops := []hw.Op{hw.OpRead, hw.OpSend, hw.OpWrite}
		for i := range uint64(3 * rounds) {
			ev := client.done(client.req, i, hw.StatusSuccess)
			assert.Equal(r, ops[i%3], ev.Op)
			assert.EqualValues(r, 64, ev.Length)
		}
		for i := range uint64(rounds) {
			server.done(server.recv, i, hw.StatusSuccess)
		}
	}},
	{ID: "DTO-3", Claim: "a message longer than its receive breaks both sides, and the receive is LOCAL_LENGTH", run: func(r *rig) {
		client, server := r.pair()
		const canary = "x"
		for i := range server.mem.Bytes() {
			server.mem.Bytes()[i] = canary[0]
		}
		server.postRecv(1, 63)
		require.NoError(r, server.ep.PostRecv(2, 0, server.mem.Segment(1024, 64)))
		client.postSend(3, 64)
		server.done(server.recv, 1, hw.StatusLocalLength)
		server.done(server.recv, 2, hw.StatusFlushed)
		ev := client.rig.next(client.req)
		want := []hw.Status{hw.StatusRemoteResponder, hw.StatusFlushed}
		if r.differs(EarlyCompletion) {
			want = append(want, hw.StatusSuccess)
		}
		if r.differs(FailsHere) {
			want = append(want, hw.StatusLocalEP)
		}
		assert.Contains(r, want, ev.Status)
		brokenBoth(server, client)
		// What the segments hold now is undefined. The bytes behind them are as they were.
		for _, behind := range [][]byte{server.mem.Bytes()[63:1024], server.mem.Bytes()[1024+64:]} {
			assert.Empty(r, bytes.Trim(behind, canary), "the message went beyond its receive")
		}
	}},
	{ID: "DTO-4", Claim: "a send waits for a receive up to its bound, then is RECEIVER_NOT_READY", needs: needs(notReadyWait), run: func(r *rig) {
		bound := attr(func(a *ep.Attr) { a.ReceiverNotReady = 40 * time.Millisecond })
		client, server := r.pair(bound)
		began := time.Now()
		client.postSend(1, 64)
		client.done(client.req, 1, hw.StatusReceiverNotReady)
		assert.GreaterOrEqual(r, time.Since(began), 20*time.Millisecond, "it waited")
		brokenBoth(client, server)

		client, server = r.pair() // with the default wait of one second
		client.postSend(1, 64)
		server.postRecv(2, 64)
		client.done(client.req, 1, hw.StatusSuccess)
		server.done(server.recv, 2, hw.StatusSuccess)
	}},
	{ID: "DTO-5", Claim: "operations of no bytes complete", run: func(r *rig) {
		client, server := r.pair()
		nothing := mem.RemoteSegment{}
		for i, post := range []func() error{
			func() error { return client.ep.PostSend(9, 0) },
			func() error { return client.ep.PostSend(9, 0, client.mem.Segment(0, 0)) },
			func() error { return client.ep.PostRDMAWrite(9, 0, nothing) },
			func() error { return client.ep.PostRDMARead(9, 0, nothing) },
			func() error { return client.ep.PostRDMAWrite(9, 0, server.mem.Remote(0, 0), client.mem.Segment(0, 0)) },
			func() error { return client.ep.PostRDMARead(9, 0, server.mem.Remote(0, 0), client.mem.Segment(0, 0)) },
		} {
			send := i < 2
			if send {
				require.NoError(r, server.ep.PostRecv(8, 0))
			}
			require.NoError(r, post(), "post %d", i)
			assert.Zero(r, client.done(client.req, 9, hw.StatusSuccess).Length)
			if send {
				assert.Zero(r, server.done(server.recv, 8, hw.StatusSuccess).Length)
			}
		}
		r.none(server.recv)
	}},
	{ID: "DTO-6", Claim: "of a segment of no bytes the other fields mean nothing", run: func(r *rig) {
		client, server := r.pair()
		garbage := mem.Segment{Addr: 0xDEAD, Len: 0, Context: 0xBEEF}
		require.NoError(r, server.ep.PostRecv(8, 0, garbage, server.mem.Segment(0, 64), garbage))
		client.completes(9, client.ep.PostSend(9, 0, garbage, client.mem.Segment(0, 64)))
		assert.EqualValues(r, 64, server.done(server.recv, 8, hw.StatusSuccess).Length)
		remote := mem.RemoteSegment{Addr: 0xDEAD, Len: 0, Context: 0xBEEF}
		client.completes(9, client.ep.PostRDMAWrite(9, 0, remote, garbage))
		client.completes(9, client.ep.PostRDMARead(9, 0, remote, garbage))
		say(client, server, 8)
	}},
	{ID: "DTO-7", Claim: "one segment more than the attributes say is INVALID_PARAMETER", run: func(r *rig) {
		client, server := r.pair()
		p := get(r, client.ep.Query)
		list := func(e *end, n int) (segs []mem.Segment) {
			for i := range n {
				segs = append(segs, e.mem.Segment(i, 1))
			}
			return segs
		}
		recv, send := p.Attr.MaxRecvIOV, p.Attr.MaxRequestIOV
		remote := server.mem.Remote(4096, 64)
		assert.ErrorIs(r, server.ep.PostRecv(1, 0, list(server, recv+1)...), hw.ErrInvalidParameter)
		assert.ErrorIs(r, client.ep.PostSend(1, 0, list(client, send+1)...), hw.ErrInvalidParameter)
		assert.ErrorIs(r, client.ep.PostRDMAWrite(1, 0, remote, list(client, send+1)...), hw.ErrInvalidParameter)
		assert.ErrorIs(r, client.ep.PostRDMARead(1, 0, remote, list(client, send+1)...), hw.ErrInvalidParameter)
		r.none(client.req)
		require.NoError(r, server.ep.PostRecv(2, 0, list(server, recv)...))
		client.completes(3, client.ep.PostSend(3, 0, list(client, min(send, recv))...))
		assert.EqualValues(r, min(send, recv), server.done(server.recv, 2, hw.StatusSuccess).Length)
		client.completes(4, client.ep.PostRDMAWrite(4, 0, remote, list(client, send)...))
	}},
	{ID: "DTO-8", Claim: "one byte more than the attributes say is LENGTH_ERROR", run: func(r *rig) {
		client, server := r.pair(attr(func(a *ep.Attr) { a.MaxMessageSize, a.MaxRDMASize = 4000, 5000 }))
		p := get(r, client.ep.Query)
		msg, rdma := int(p.Attr.MaxMessageSize), int(p.Attr.MaxRDMASize)
		require.Less(r, max(msg, rdma), endMem, "it was asked for less")
		remote := server.mem.Remote(0, rdma+1)
		assert.ErrorIs(r, client.ep.PostSend(1, 0, client.mem.Segment(0, msg+1)), hw.ErrLength)
		assert.ErrorIs(r, client.ep.PostRDMAWrite(1, 0, remote, client.mem.Segment(0, rdma+1)), hw.ErrLength)
		assert.ErrorIs(r, client.ep.PostRDMARead(1, 0, remote, client.mem.Segment(0, rdma+1)), hw.ErrLength)
		r.none(client.req)
		say(client, server, msg)
		client.completes(4, client.ep.PostRDMAWrite(4, 0, server.mem.Remote(0, rdma), client.mem.Segment(0, rdma)))
		client.completes(5, client.ep.PostRDMARead(5, 0, server.mem.Remote(0, rdma), client.mem.Segment(0, rdma)))
	}},
	{ID: "DTO-9", Claim: "a read into less than it reads and a write to less than it writes are LENGTH_ERROR", run: func(r *rig) {
		client, server := r.pair()
		assert.ErrorIs(r, client.ep.PostRDMARead(1, 0, server.mem.Remote(0, 65), client.mem.Segment(0, 64)), hw.ErrLength)
		assert.ErrorIs(r, client.ep.PostRDMAWrite(1, 0, server.mem.Remote(0, 63), client.mem.Segment(0, 64)), hw.ErrLength)
		r.none(client.req)
		client.completes(2, client.ep.PostRDMARead(2, 0, server.mem.Remote(0, 63), client.mem.Segment(0, 64)))
		client.completes(3, client.ep.PostRDMAWrite(3, 0, server.mem.Remote(0, 65), client.mem.Segment(0, 64)))
	}},
	{ID: "DTO-14", Claim: "the array of segments is the caller's when the post returns", run: func(r *rig) {
		client, server := r.pair()
		copy(client.mem.Bytes(), "these come first, not those")
		into, from := make([]mem.Segment, 1), make([]mem.Segment, 1)
		into[0] = server.mem.Segment(0, 64)
		require.NoError(r, server.ep.PostRecv(1, 0, into...))
		into[0] = mem.Segment{Addr: 1, Len: 1, Context: 1}
		from[0] = client.mem.Segment(0, 16)
		require.NoError(r, client.ep.PostSend(2, 0, from...))
		from[0] = mem.Segment{Addr: 1, Len: 1, Context: 1}
		client.done(client.req, 2, hw.StatusSuccess)
		server.done(server.recv, 1, hw.StatusSuccess)
		assert.Equal(r, "these come first", string(server.mem.Bytes()[:16]))
	}},
	{ID: "DTO-15", Claim: "no byte outside the segments changes", run: func(r *rig) {
		client, server := r.pair()
		const at, n, canary = 512, 100, 0xA5
		for _, e := range []*end{client, server} {
			for i := range e.mem.Bytes() {
				e.mem.Bytes()[i] = canary
			}
		}
		fill := func(e *end) {
			for i := range n {
				e.mem.Bytes()[at+i] = byte(i)
			}
		}
		clean := func(e *end) {
			for i, b := range e.mem.Bytes() {
				want := byte(canary)
				if at <= i && i < at+n {
					want = byte(i - at)
				}
				if b != want {
					require.Equal(r, want, b, "byte %d", i)
				}
			}
			for i := range n {
				e.mem.Bytes()[at+i] = canary
			}
		}
		fill(client)
		require.NoError(r, server.ep.PostRecv(1, 0, server.mem.Segment(at, n+50)))
		client.completes(2, client.ep.PostSend(2, 0, client.mem.Segment(at, n)))
		server.done(server.recv, 1, hw.StatusSuccess)
		clean(server)
		client.completes(3, client.ep.PostRDMAWrite(3, 0, server.mem.Remote(at, n+50), client.mem.Segment(at, n)))
		say(client, server, 0) // when a later message has come, the written bytes are there
		clean(server)
		clean(client)
		fill(server)
		client.completes(4, client.ep.PostRDMARead(4, 0, server.mem.Remote(at, n), client.mem.Segment(at, n+50)))
		clean(client)
	}},
	{ID: "DTO-17", Claim: "messages are gathered and scattered as the segments say", run: func(r *rig) {
		client, server := r.pair()
		text := client.mem.Bytes()[:26]
		for i := range text {
			text[i] = 'a' + byte(i)
		}
		from := []mem.Segment{client.mem.Segment(0, 1), client.mem.Segment(1, 1), client.mem.Segment(2, 9), client.mem.Segment(11, 15)}
		into := []mem.Segment{server.mem.Segment(100, 7), server.mem.Segment(50, 1), server.mem.Segment(200, 17), server.mem.Segment(300, 100)}
		require.NoError(r, server.ep.PostRecv(1, 0, into...))
		client.completes(2, client.ep.PostSend(2, 0, from...))
		assert.EqualValues(r, 26, server.done(server.recv, 1, hw.StatusSuccess).Length)
		b := server.mem.Bytes()
		assert.Equal(r, "abcdefg", string(b[100:107]))
		assert.Equal(r, "h", string(b[50:51]))
		assert.Equal(r, "ijklmnopqrstuvwxy", string(b[200:217]))
		assert.Equal(r, "z\x00", string(b[300:302]))

		client.completes(3, client.ep.PostRDMAWrite(3, 0, server.mem.Remote(1000, 26), from...))
		say(client, server, 0)
		assert.Equal(r, "abcdefghijklmnopqrstuvwxyz", string(b[1000:1026]))
		if client.node.ia.Attr().MaxReadSegments < 2 {
			return
		}
		back := []mem.Segment{client.mem.Segment(500, 25), client.mem.Segment(600, 1)}
		client.completes(4, client.ep.PostRDMARead(4, 0, server.mem.Remote(1000, 26), back...))
		assert.Equal(r, "abcdefghijklmnopqrstuvwxy", string(client.mem.Bytes()[500:525]))
		assert.Equal(r, "z", string(client.mem.Bytes()[600:601]))
	}},
	{ID: "DTO-18", Claim: "reads beyond the credit wait, and a peer that takes none refuses", run: func(r *rig) {
		client, server := r.pair(attr(func(a *ep.Attr) { a.MaxReadOut, a.MaxReadIn = 1, 1 }))
		require.NoError(r, server.ep.PostRecv(13, 0, server.mem.Segment(8192, 64)))
		for i := range uint64(12) {
			require.NoError(r, client.ep.PostRDMARead(i, 0, server.mem.Remote(0, 4096), client.mem.Segment(0, 4096)))
		}
		require.NoError(r, client.ep.PostSend(12, 0, client.mem.Segment(8192, 64))) // it may wait with the reads
		for i := range uint64(13) {
			client.done(client.req, i, hw.StatusSuccess)
		}
		server.done(server.recv, 13, hw.StatusSuccess)
		client, server = r.pair(attr(func(a *ep.Attr) { a.MaxReadIn = ep.NoDTOs }))
		require.NoError(r, client.ep.PostRDMARead(1, 0, server.mem.Remote(0, 64), client.mem.Segment(0, 64)))
		if r.differs(LaxCredit) {
			client.done(client.req, 1, hw.StatusSuccess)
			return
		}
		ev := client.rig.next(client.req)
		assert.NotEqual(r, hw.StatusSuccess, ev.Status)
		client.connection(event.Broken)
	}},
	{ID: "DTO-19", Claim: "after a connection broke both directions end with flushes, in order", run: func(r *rig) {
		client, server := r.pair()
		client.receives(3)
		require.NoError(r, client.ep.PostRDMAWrite(10, 0, mem.RemoteSegment{Addr: 1 << 40, Len: 64, Context: 0}, client.mem.Segment(0, 64)))
		switch ev := client.rig.next(client.req); {
		case r.differs(EarlyCompletion) && ev.Status == hw.StatusSuccess:
		case r.differs(FailsHere) && ev.Status == hw.StatusLocalEP: // the peer's refusal came while the device sent
		default:
			assert.Equal(r, hw.StatusRemoteAccess, ev.Status)
		}
		for i := range uint64(3) {
			client.done(client.recv, i, hw.StatusFlushed)
		}
		brokenBoth(client, server)
	}},
}

// say posts a receive at to and a send at from, and waits for both.
func say(from, to *end, n int) {
	require.NoError(to.rig, to.ep.PostRecv(1000, 0, to.mem.Segment(0, n)))
	require.NoError(from.rig, from.ep.PostSend(1001, 0, from.mem.Segment(0, n)))
	from.done(from.req, 1001, hw.StatusSuccess)
	to.done(to.recv, 1000, hw.StatusSuccess)
}

// brokenBoth waits for the event of the broken connection at both ends.
func brokenBoth(a, b *end) {
	a.connection(event.Broken)
	// Whether the other side sees an orderly end or a fault depends on the
	// transport.
	ev := b.rig.next(b.conn)
	require.Contains(b.rig, []event.Number{event.Broken, event.Disconnected}, ev.Number)
}
