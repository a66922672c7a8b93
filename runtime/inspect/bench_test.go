package inspect

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw/event"
	dat "godat/runtime"
)

// crowd makes an adapter with pairs of connections, and returns both ends of the last pair.
func crowd(b testing.TB, pairs int) (ln *dat.Listener, ia *dat.IA, client, server *dat.Conn) {
	ia, err := dat.Open(b.Context(), "loop")
	require.NoError(b, err)
	b.Cleanup(func() { _ = ia.Close() })
	ln, err = ia.Listen(b.Context(), "", dat.ConnConfig{Depth: 1, Message: 64, Conns: 2 * pairs})
	require.NoError(b, err)
	for range pairs {
		client, err = ln.Dial(ln.Addr(), nil)
		require.NoError(b, err)
		server, err = ln.Accept(ep.RequestOf(<-ln.Requests()), nil)
		require.NoError(b, err)
		for range 2 {
			require.Equal(b, event.Established, (<-ln.Events()).Number)
		}
	}
	return ln, ia, client, server
}

// BenchmarkScrape measures one request for the page of 10 000 connections:
//
//	go test ./runtime/inspect -run '^$' -bench Scrape -benchtime 20x
func BenchmarkScrape(b *testing.B) {
	_, ia, _, _ := crowd(b, 5000)
	b.Run("snapshot", func(b *testing.B) {
		for b.Loop() {
			s, err := ia.Snapshot()
			require.NoError(b, err)
			require.Len(b, s.Conns, 10000)
		}
	})
	b.Run("troubles", func(b *testing.B) {
		h := New(ia)
		for b.Loop() {
			h.adapters[0].forget()
			_, err := h.adapters[0].look()
			require.NoError(b, err)
		}
	})
}

// BenchmarkRoundTripsBesideAScrape is what a scrape of 10 000 connections in each second takes from the
// round trips of one of them. Seconds with and without a scrape take turns; lost is in percent:
//
//	go test ./runtime/inspect -run '^$' -bench RoundTrips -benchtime 10x
func BenchmarkRoundTripsBesideAScrape(b *testing.B) {
	ln, ia, client, server := crowd(b, 5000)
	h := New(ia)
	pass := func(from *dat.Conn) {
		require.NoError(b, from.SendBytes([]byte("ping")))
		ev := <-ln.Events()
		c := dat.ConnOf(ev)
		c.Release(c.Message(ev))
	}
	var trips [2]int
	for b.Loop() {
		for scraped := range trips {
			var looks sync.WaitGroup
			if scraped == 1 {
				looks.Go(func() {
					h.adapters[0].forget()
					_, _ = h.adapters[0].look()
				})
			}
			for begin := time.Now(); time.Since(begin) < time.Second; trips[scraped]++ {
				pass(client)
				pass(server)
			}
			looks.Wait()
		}
	}
	b.ReportMetric(float64(trips[0])/float64(b.N), "trips/s")
	b.ReportMetric(100*(1-float64(trips[1])/float64(trips[0])), "%lost")
}
