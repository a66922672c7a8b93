package prometheus

import (
	"strconv"
	"sync"
	"time"

	client "github.com/prometheus/client_golang/prometheus"

	dat "godat/runtime"
	"godat/runtime/rpc"
)

// Collector is a prometheus.Collector. Its methods may be called from any goroutine.
type Collector struct {
	ias []*dat.IA // immutable

	mu    sync.Mutex // held by a scrape
	grown map[*dat.IA]*growth
}

// New makes a collector for those adapters, which may be closed before it: godat_up is 0 then.
func New(ias ...*dat.IA) *Collector {
	c := &Collector{ias: ias, grown: make(map[*dat.IA]*growth)}
	for _, ia := range ias {
		c.grown[ia] = &growth{now: make(map[place]uint64), sum: make(map[series]uint64)}
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *client.Desc) {
	for _, d := range described {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- client.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ia := range c.ias {
		s, err := ia.Snapshot()
		if err != nil { // it is closed
			to <- client.MustNewConstMetric(up, client.GaugeValue, 0, ia.Name())
			continue
		}
		p := &scrape{to, &s, c.grown[ia]}
		p.gauge(up, 1)
		p.endpoints()
		p.dispatchers()
		p.listeners()
		p.memory()
		p.calls()
		p.grown.flush(p)
	}
}

// scrape is what Collect does for one adapter.
type scrape struct {
	to    chan<- client.Metric
	now   *dat.Snapshot
	grown *growth
}

func (p *scrape) metric(d *client.Desc, kind client.ValueType, v float64, labels []string) {
	p.to <- client.MustNewConstMetric(d, kind, v, append([]string{p.now.Adapter}, labels...)...)
}

func (p *scrape) gauge(d *client.Desc, v float64, labels ...string) {
	p.metric(d, client.GaugeValue, v, labels)
}

func (p *scrape) counter(d *client.Desc, n uint64, labels ...string) {
	p.metric(d, client.CounterValue, float64(n), labels)
}

// endpoints sums the endpoints, those of connections and others.
func (p *scrape) endpoints() {
	states := make(map[[2]string]int)
	var outstanding, silent, unposted, held int
	var oldest time.Duration
	one := func(owner string, e *dat.EndpointSnapshot) {
		states[[2]string{owner, e.State}]++
		outstanding += e.Requests.Outstanding
		oldest = max(oldest, e.Requests.OldestAge)
		if e.Silence > 0 {
			silent++
		}
		p.queue(e.Name, "requests", &e.Requests)
		p.queue(e.Name, "receives", &e.Receives)
	}
	for i := range p.now.Conns {
		c := &p.now.Conns[i]
		one("connection", &c.Endpoint)
		unposted += c.Missing
		held += c.Buffers.Held
	}
	for i := range p.now.Endpoints {
		one("program", &p.now.Endpoints[i])
	}
	for i := range p.now.Pools {
		held += p.now.Pools[i].Held
	}
	for key, n := range states {
		p.gauge(endpoints, float64(n), key[0], key[1])
	}
	p.gauge(outstandingRequests, float64(outstanding))
	p.gauge(oldestRequest, oldest.Seconds())
	p.gauge(silentPeers, float64(silent))
	p.gauge(unpostedReceives, float64(unposted))
	p.gauge(heldBuffers, float64(held))
	for _, e := range p.now.Ends {
		p.counter(ends, e.Count, e.Event, e.Layer, strconv.Itoa(e.Code))
	}
}

func (p *scrape) queue(name, queue string, q *dat.QueueSnapshot) {
	for _, m := range q.Moved {
		p.grown.add(name, operations, m.Operations, queue, m.Kind)
		p.grown.add(name, moved, m.Octets, queue, m.Kind)
	}
	p.grown.add(name, failed, q.Failed, queue)
}

func (p *scrape) dispatchers() {
	var queued, full int
	var oldest, callback time.Duration
	for i := range p.now.Dispatchers {
		d := &p.now.Dispatchers[i]
		queued += d.Queued
		if d.QLen > 0 && d.Reserved >= d.QLen {
			full++
		}
		oldest, callback = max(oldest, d.OldestAge), max(callback, d.CallbackAge)
		p.grown.add(d.Name, events, d.Events)
		p.grown.add(d.Name, lostEvents, d.Lost)
		p.grown.add(d.Name, refusedPosts, d.Refused)
	}
	p.gauge(dispatchers, float64(len(p.now.Dispatchers)))
	p.gauge(fullDispatchers, float64(full))
	p.gauge(queuedEvents, float64(queued))
	p.gauge(oldestEvent, oldest.Seconds())
	p.gauge(oldestCallback, callback.Seconds())
}

// listeners has each listener, of which the program makes few.
func (p *scrape) listeners() {
	seen := make(map[string]bool)
	for i := range p.now.Listeners {
		l := &p.now.Listeners[i]
		if seen[l.Name] {
			continue // two on one address of a provider that allows it
		}
		seen[l.Name] = true
		p.gauge(takenPlaces, float64(l.Taken), l.Name)
		p.gauge(places, float64(l.Conns), l.Name)
		p.gauge(waitingPeers, float64(l.Waiting), l.Name)
		p.counter(answered, l.Accepted, l.Name, "accepted")
		p.counter(answered, l.Rejected, l.Name, "rejected")
		p.counter(answered, l.Overflows, l.Name, "overflow")
		if d := l.Device; d != nil {
			p.gauge(halfOpen, float64(d.HalfOpen), l.Name)
			p.counter(dropped, d.GaveWay, l.Name, "gave_way")
			p.counter(dropped, d.Silent, l.Name, "silent")
			p.counter(dropped, d.Descriptors, l.Name, "no_descriptor")
		}
	}
}

func (p *scrape) memory() {
	p.gauge(regions, float64(p.now.Memory.Regions))
	p.gauge(registered, float64(p.now.Memory.Bytes))
	p.gauge(mapped, float64(p.now.Memory.MappedBytes))
	p.counter(deviceErrors, p.now.Counters.Async.Errors)
}

// calls sums the clients and servers of package rpc, by the address of the server.
func (p *scrape) calls() {
	type sum struct {
		calls, waiting, down int
		oldest               time.Duration
	}
	clients := make(map[string]sum)
	for _, row := range p.now.Reports["rpc clients"] {
		if c, ok := row.(rpc.ClientSnapshot); ok {
			s := clients[c.Server]
			s.calls += c.Calls
			s.waiting += c.Waiting
			if c.Down != "" {
				s.down++
			}
			s.oldest = max(s.oldest, c.OldestAge)
			clients[c.Server] = s
		}
	}
	for server, s := range clients {
		p.gauge(callsUnderWay, float64(s.calls), server)
		p.gauge(messagesWaiting, float64(s.waiting), server)
		p.gauge(clientsDown, float64(s.down), server)
		p.gauge(oldestCall, s.oldest.Seconds(), server)
	}
	seen := make(map[string]bool)
	for _, row := range p.now.Reports["rpc servers"] {
		if s, ok := row.(rpc.ServerSnapshot); ok && !seen[s.Address] {
			seen[s.Address] = true
			p.gauge(requestsUnderWay, float64(s.Requests), s.Address)
			p.gauge(requestsUntaken, float64(s.Untaken), s.Address)
			p.counter(answers, s.Answers-s.Failures, s.Address, "done")
			p.counter(answers, s.Failures, s.Address, "failed")
			p.counter(answers, s.Refused, s.Address, "refused")
		}
	}
}
