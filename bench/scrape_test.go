package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"godat/bench/stats"
	dat "godat/runtime"
	"godat/runtime/inspect"
)

// scrapeTargets measure the page of many connections: how long a look at it takes, and what a look in each
// second takes from the round trips of one of them. While nobody looks the page does nothing, so what T8
// counts is with it. With one processor a look takes the most.
func scrapeTargets(c contest) []target {
	if c.procs > 1 {
		return nil
	}
	ia := must(dat.Open(context.Background(), "loop"))
	defer func() { check(ia.Close()) }()
	pairs := min(c.most()/2, 5000)
	ln := must(ia.Listen(context.Background(), "", dat.ConnConfig{Depth: 1, Message: 64, Conns: 2 * pairs}))
	var client, server *dat.Conn
	for range pairs {
		client = must(ln.Dial(ln.Addr(), nil))
		server = must(ln.Accept(dat.RequestOf(<-ln.Requests()), nil))
		for range 2 {
			<-ln.Events()
		}
	}
	page := inspect.New(ia)
	look := func() time.Duration {
		began := time.Now()
		page.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		return time.Since(began)
	}
	var took, lost []float64
	for range c.repeats {
		var trips [2]int
		for looked := range trips {
			var looks sync.WaitGroup
			if looked == 1 {
				looks.Go(func() { took = append(took, float64(look().Milliseconds())) })
			}
			for began := time.Now(); time.Since(began) < time.Second; trips[looked]++ {
				roundTrip(ln, client, server)
			}
			looks.Wait()
		}
		lost = append(lost, float64(trips[1])/float64(trips[0]))
	}
	return []target{
		{"T18", "a look at the page of 10 000 connections, in ms", stats.Of(took), false, 50},
		{"T18", "round trips beside a look in each second / without", stats.Of(lost), true, 0.95},
	}
}

// roundTrip sends a message each way.
func roundTrip(ln *dat.Listener, ends ...*dat.Conn) {
	for _, from := range ends {
		check(from.SendBytes([]byte("ping")))
		ev := <-ln.Events()
		to := dat.ConnOf(ev)
		to.Release(to.Message(ev))
	}
}
