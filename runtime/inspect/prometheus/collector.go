package prometheus

import (
	"slices"
	"strconv"
	"time"

	client "github.com/prometheus/client_golang/prometheus"

	dat "godat/runtime"
	"godat/runtime/inspect"
	"godat/runtime/rpc"
)

// Collector is a prometheus.Collector. Its methods may be called from any goroutine.
type Collector struct {
	adapters []adapter // immutable
}

// adapter is an adapter with its label.
type adapter struct {
	*dat.IA
	label string
}

// New makes a collector for those adapters, which may be closed before it: godat_up is 0 then. An
// adapter's label is the name that it was opened by; the second one of a name is NAME#2.
func New(ias ...*dat.IA) *Collector {
	c, labels := new(Collector), inspect.Labels(ias...)
	for i, ia := range ias {
		if !slices.Contains(ias[:i], ia) {
			c.adapters = append(c.adapters, adapter{ia, labels[i]})
		}
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
	for _, a := range c.adapters {
		s, err := a.Snapshot()
		if err != nil { // it is closed
			to <- client.MustNewConstMetric(up, client.GaugeValue, 0, a.label)
			continue
		}
		p := &scrape{to, &s, a.label, make(map[series]uint64)}
		p.gauge(up, 1)
		p.endpoints()
		p.dispatchers()
		p.listeners()
		p.memory()
		p.calls()
		p.totals()
		p.flush()
	}
}

// scrape is what Collect does for one adapter.
type scrape struct {
	to    chan<- client.Metric
	now   *dat.Snapshot
	label string
	sums  map[series]uint64 // of what many objects count
}

// series is a series of a metric, with its labels behind the adapter.
type series struct {
	desc   *client.Desc
	labels [2]string // empty where the metric has fewer
}

func (p *scrape) metric(d *client.Desc, kind client.ValueType, v float64, labels []string) {
	p.to <- client.MustNewConstMetric(d, kind, v, append([]string{p.label}, labels...)...)
}

func (p *scrape) gauge(d *client.Desc, v float64, labels ...string) {
	p.metric(d, client.GaugeValue, v, labels)
}

func (p *scrape) counter(d *client.Desc, n uint64, labels ...string) {
	p.metric(d, client.CounterValue, float64(n), labels)
}

// add adds to a sum over objects, those that are freed among them.
func (p *scrape) add(d *client.Desc, n uint64, labels ...string) {
	at := series{desc: d}
	copy(at.labels[:], labels)
	p.sums[at] += n
}

// flush tells the sums.
func (p *scrape) flush() {
	for at, n := range p.sums {
		labels := at.labels[:]
		for len(labels) > 0 && labels[len(labels)-1] == "" {
			labels = labels[:len(labels)-1]
		}
		p.counter(at.desc, n, labels...)
	}
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
		p.queue("requests", &e.Requests.QueueCounts)
		p.queue("receives", &e.Receives.QueueCounts)
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
	p.queue("requests", &p.now.Freed.Requests)
	p.queue("receives", &p.now.Freed.Receives)
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

func (p *scrape) queue(queue string, q *dat.QueueCounts) {
	for _, m := range q.Moved {
		p.add(operations, m.Operations, queue, m.Kind)
		p.add(moved, m.Octets, queue, m.Kind)
	}
	p.add(failed, q.Failed, queue)
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
		p.add(events, d.Events)
		p.add(lostEvents, d.Lost)
		p.add(refusedPosts, d.Refused)
	}
	freed := &p.now.Freed
	p.add(events, freed.Dispatchers.Events)
	p.add(lostEvents, freed.Dispatchers.Lost)
	p.add(refusedPosts, freed.Refused)
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
		calls, waiting, down, callers int
		oldest, callersAge            time.Duration
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
			s.callers += c.Callers
			s.callersAge = max(s.callersAge, c.CallersAge)
			s.oldest = max(s.oldest, c.OldestAge)
			clients[c.Server] = s
		}
	}
	for server, s := range clients {
		p.gauge(callsUnderWay, float64(s.calls), server)
		p.gauge(messagesWaiting, float64(s.waiting), server)
		p.gauge(clientsDown, float64(s.down), server)
		p.gauge(oldestCall, s.oldest.Seconds(), server)
		p.gauge(callersWaiting, float64(s.callers), server)
		p.gauge(oldestCaller, s.callersAge.Seconds(), server)
	}
	seen := make(map[string]bool)
	for _, row := range p.now.Reports["rpc servers"] {
		if s, ok := row.(rpc.ServerSnapshot); ok && !seen[s.Address] {
			seen[s.Address] = true
			p.gauge(requestsUnderWay, float64(s.Requests), s.Address)
			p.gauge(requestsUntaken, float64(s.Untaken), s.Address)
			p.gauge(oldestUntaken, s.UntakenAge.Seconds(), s.Address)
		}
	}
}

// totals has what clients and servers of package rpc have counted, those that are closed among them.
func (p *scrape) totals() {
	for _, row := range p.now.Reports["rpc totals"] {
		t, ok := row.(rpc.TotalSnapshot)
		if !ok {
			continue
		}
		metric := clientCalls
		if t.End == "server" {
			metric = answers
			p.counter(metric, t.Refused, t.Address, "refused")
		} else {
			p.counter(metric, t.Lost, t.Address, "lost")
			p.counter(reconnects, t.Reconnects, t.Address)
		}
		p.counter(metric, t.Answers-t.Failures, t.Address, "done")
		p.counter(metric, t.Failures, t.Address, "failed")
		p.counter(metric, t.Left, t.Address, "left")
		p.counter(late, t.Late, t.Address, t.End)
	}
}
