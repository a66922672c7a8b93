package prometheus

import (
	"slices"
	"strconv"
	"time"

	client "github.com/prometheus/client_golang/prometheus"

	"godat/ep"
	"godat/hw"
	dat "godat/runtime"
	"godat/runtime/inspect"
	"godat/runtime/inspect/internal/owners"
	"godat/runtime/inspect/internal/process"
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
	tellProcess(to)
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
		p.polls()
		p.listeners()
		p.memory()
		p.calls()
		p.totals()
		p.methods()
		p.minute()
		p.requests()
		p.flush()
	}
}

// tellProcess tells what the page says of the process. A limit that is not there has no metric.
func tellProcess(to chan<- client.Metric) {
	p := process.Now()
	gauge := func(d *client.Desc, v float64, labels ...string) {
		to <- client.MustNewConstMetric(d, client.GaugeValue, v, labels...)
	}
	gauge(buildInfo, 1, p.Program, p.Module, p.Version, p.Commit, p.Library, p.Go)
	gauge(startTime, float64(p.Started.UnixMilli())/1e3)
	gauge(processors, float64(p.GOMAXPROCS))
	gauge(goroutines, float64(p.Goroutines))
	for d, n := range map[*client.Desc]uint64{
		descriptors: p.Descriptors, descriptorsMax: p.DescriptorsLimit, memory: p.Memory, memoryMax: p.MemoryLimit, lockedMemoryMax: p.LockedLimit,
	} {
		if n > 0 {
			gauge(d, float64(n))
		}
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
	labels [3]string // empty where the metric has fewer
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
	one := func(owner string, e *ep.EndpointSnapshot) {
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

func (p *scrape) queue(queue string, q *ep.QueueCounts) {
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

// polls has how the device's completions were noticed; nothing of a device that nobody polls.
func (p *scrape) polls() {
	c := p.now.Polls
	if c == nil {
		return
	}
	p.counter(polls, c.Found, "found")
	p.counter(polls, c.Empty, "empty")
	p.counter(consumerPolls, c.Consumers)
	p.counter(arms, c.Arms)
	p.counter(waits, c.Waits)
	p.counter(wakes, c.Wakes)
	p.counter(handBacks, c.HandBacks)
	p.metric(spun, client.CounterValue, c.Spun.Seconds(), nil)
}

// listeners has each listener, of which the program makes few, and what closed ones counted.
func (p *scrape) listeners() {
	seen := make(map[string]bool)
	for i := range p.now.Listeners {
		l := &p.now.Listeners[i]
		var device hw.ListenerCounts
		if l.Device != nil {
			device = *l.Device
		}
		p.answered(l.Name, l.Accepted, l.Rejected, l.Overflows)
		p.dropped(l.Name, device.GaveWay, device.Silent, device.Descriptors)
		if seen[l.Name] {
			continue // two on one address of a provider that allows it
		}
		seen[l.Name] = true
		p.gauge(takenPlaces, float64(l.Taken), l.Name)
		p.gauge(places, float64(l.Conns), l.Name)
		p.gauge(waitingPeers, float64(l.Waiting), l.Name)
		p.gauge(halfOpen, float64(device.HalfOpen), l.Name)
	}
	for _, l := range p.now.Freed.Listeners {
		p.answered(l.Name, l.Accepted, l.Rejected, l.Overflows)
		p.dropped(l.Name, l.Device.GaveWay, l.Device.Silent, l.Device.Descriptors)
	}
}

func (p *scrape) answered(listener string, accepted, rejected, overflows uint64) {
	p.add(answered, accepted, listener, "accepted")
	p.add(answered, rejected, listener, "rejected")
	p.add(answered, overflows, listener, "overflow")
}

func (p *scrape) dropped(listener string, gaveWay, silent, descriptors uint64) {
	p.add(dropped, gaveWay, listener, "gave_way")
	p.add(dropped, silent, listener, "silent")
	p.add(dropped, descriptors, listener, "no_descriptor")
}

func (p *scrape) memory() {
	p.gauge(regions, float64(p.now.Memory.Regions))
	p.gauge(registered, float64(p.now.Memory.Bytes))
	p.gauge(mapped, float64(p.now.Memory.MappedBytes))
	p.counter(deviceErrors, p.now.Counters.Async.Errors)
	for _, o := range owners.Of(p.now) {
		p.gauge(ownerMemory, float64(o.Bytes), o.Name)
		p.gauge(ownerHeld, float64(o.Held), o.Name)
		p.gauge(ownerHeldAge, o.HeldAge.Seconds(), o.Name)
	}
}
