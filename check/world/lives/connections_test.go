package lives

import (
	"encoding/binary"
	"regexp"
	"time"

	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// numbered is the number of a system's error, of which each system has its own.
var numbered = regexp.MustCompile(` \(\d+\)`)

var apart = dat.ConnConfig{Depth: 4, Message: 64, Apart: true}

func init() {
	lives["connection-message"] = func(l *life) {
		ln, client, server := l.connected(apart)
		require.NoError(l, client.SendBytes([]byte("a question")))
		b := must(server.Receive(l.Context()))
		l.says("server", "has %q", b.Bytes())
		copy(b.Bytes(), "an answer ")
		require.NoError(l, server.Send(b))
		b = must(client.Receive(l.Context()))
		l.says("client", "has %q", b.Bytes())
		client.Release(b)
		require.NoError(l, client.Shutdown(l.Context()))
		l.says("client", "has shut down")
		_, err := server.Receive(l.Context())
		l.says("server", "receives: %v", err)
		l.ends(ln, server)
	}
	lives["connection-memory"] = func(l *life) {
		ln, client, server := l.connected(apart)
		region := must(server.Alloc(64, hw.LocalRead|hw.LocalWrite|hw.RemoteRead|hw.RemoteWrite|hw.RemoteAtomic))
		own := must(client.Alloc(64, hw.LocalRead|hw.LocalWrite))
		name := must(region.Remote(0, 64).MarshalBinary())
		remote := must(mem.ParseRemoteSegment(name))
		copy(own.Bytes(), "written")
		require.NoError(l, client.Do(l.Context(), ep.DTO{Op: hw.OpWrite, Segment: own.Segment(0, 7), Remote: remote.Slice(0, 7)}))
		l.says("client", "has written %q, and nobody told the server", own.Bytes()[:7])
		require.NoError(l, client.Do(l.Context(), ep.DTO{Op: hw.OpRead, Segment: own.Segment(32, 7), Remote: remote.Slice(0, 7)}))
		l.says("client", "has read %q", own.Bytes()[32:39])
		for range 2 {
			require.NoError(l, client.Do(l.Context(), ep.DTO{Op: hw.OpFetchAdd, Segment: own.Segment(48, 8), Remote: remote.Slice(48, 8), Operand: 5}))
			l.says("client", "has added 5 to %d", binary.NativeEndian.Uint64(own.Bytes()[48:]))
		}
		l.says("server", "finds %q and %d", region.Bytes()[:7], binary.NativeEndian.Uint64(region.Bytes()[48:]))
		l.ends(ln, client, server)
	}
	lives["connection-suppressed"] = func(l *life) {
		ln, client, server := l.connected(apart)
		region := must(server.Alloc(64, hw.LocalRead|hw.LocalWrite|hw.RemoteRead|hw.RemoteWrite))
		own := must(client.Alloc(64, hw.LocalRead|hw.LocalWrite))
		var all []ep.DTO
		for i := range 3 {
			own.Bytes()[i] = byte('a' + i)
			all = append(all, ep.DTO{Op: hw.OpWrite, Cookie: uint64(i), Flags: hw.Suppress, Segment: own.Segment(i, 1), Remote: region.Remote(i, 1)})
		}
		all[2].Flags = hw.Default
		n := must(client.Endpoint.PostBatch(all))
		l.says("client", "has posted %d writes, and suppressed the events of all but the last", n)
		ev := next(client)
		l.says("client", "has the event of write %d: %s", ev.Cookie, brief(ev.Err()))
		l.says("client", "may use its memory again: that is all the event says")
		require.NoError(l, client.Do(l.Context(), ep.DTO{Op: hw.OpRead, Segment: own.Segment(32, 3), Remote: region.Remote(0, 3)}))
		l.says("client", "has read %q behind the writes", own.Bytes()[32:35])
		l.says("server", "finds %q", region.Bytes()[:3])
		l.ends(ln, client, server)
	}
	lives["connection-window"] = func(l *life) {
		ln, client, server := l.connected(apart)
		region := must(server.Alloc(64, hw.LocalRead|hw.LocalWrite))
		copy(region.Bytes(), "behind a window")
		window := must(server.Endpoint.NewRMR())
		remote := must(server.Endpoint.PostBind(1, hw.Default, window, mem.Binding{Segment: region.Segment(0, 15), Privileges: hw.RemoteRead}))
		ev := next(server)
		l.says("server", "has bound its window: %s", brief(ev.Err()))
		own := must(client.Alloc(64, hw.LocalWrite))
		require.NoError(l, client.Do(l.Context(), ep.DTO{Op: hw.OpRead, Segment: own.Segment(0, 15), Remote: remote}))
		l.says("client", "has read %q", own.Bytes()[:15])
		must(server.Endpoint.PostBind(2, hw.Default, window, mem.Binding{}))
		ev = next(server)
		l.says("server", "has bound its window to nothing: %s", brief(ev.Err()))
		l.ends(ln, client, server)
	}
	lives["connection-buffers"] = func(l *life) {
		ln, client, server := l.connected(apart)
		var held []*mem.Buffer
		for b := client.Buffer(); b != nil; b = client.Buffer() {
			held = append(held, b)
		}
		l.says("client", "has %d buffers, and gets no more", len(held))
		came := make(chan *mem.Buffer)
		go func() {
			b, err := client.WaitBuffer(l.Context())
			if err != nil {
				l.Errorf("WaitBuffer: %v", err)
			}
			came <- b
		}()
		time.Sleep(time.Second)
		l.says("client", "waits for one")
		client.Release(held[0])
		held[0] = <-came
		l.says("client", "has one that was given back")
		for _, b := range held {
			client.Release(b)
		}
		l.ends(ln, client, server)
	}
	lives["connection-rejected"] = func(l *life) {
		ln := must(l.server.Listen(l.Context(), address, apart))
		l.says("server", "listens")
		go func() { _ = ep.RequestOf(<-ln.Requests()).Reject([]byte("not today")) }()
		_, err := l.client.Dial(l.Context(), address, apart)
		l.says("client", "is not connected: %v", err)
		l.ends(ln)
	}
	lives["connection-nobody-listens"] = func(l *life) {
		_, err := l.client.Dial(l.Context(), address, apart)
		l.says("client", "is not connected: %s", numbered.ReplaceAllString(err.Error(), ""))
	}
	lives["listener-again"] = func(l *life) {
		ln, client, server := l.connected(apart)
		require.NoError(l, ln.Shutdown(l.Context()))
		l.says("server", "has shut down")
		_, err := client.Receive(l.Context())
		l.says("client", "receives: %v", err)
		require.NoError(l, client.Close())
		require.NoError(l, server.Close())
		ln, client, server = l.connected(apart)
		l.ends(ln, client, server)
	}
}

func init() {
	lives["dispatcher"] = func(l *life) {
		cno := must(l.client.NewCNO(evd.CNOConfig{}))
		d := must(l.client.NewDispatcher(evd.Config{QLen: 8, MaxLen: 8, Mode: evd.ModeQueue, Streams: event.StreamSoftware, CNO: cno}))
		for i := range 2 {
			require.NoError(l, d.PostSoftware(i))
		}
		l.says("client", "has posted two events")
		_, err := cno.Wait(l.Context())
		l.says("client", "hears of them: %s", brief(err))
		all := make([]event.Event, 4)
		n := must(d.Dequeue(all))
		for _, ev := range all[:n] {
			payload, _ := ev.Software()
			l.says("client", "has event %v", payload)
		}
		n, err = d.Dequeue(all)
		l.says("client", "finds %d more: %s", n, brief(err))
		require.NoError(l, d.Close())
		require.NoError(l, cno.Close())
	}
}
