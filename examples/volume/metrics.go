package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	dat "godat/runtime"
	"godat/runtime/inspect/prometheus"
)

// metrics are a process's volumes for Prometheus. A scrape asks each node for its status, and waits for none: of a node
// that does not answer it has how long the disk takes.
type metrics struct {
	m      *machine
	commit *client.HistogramVec
}

func newMetrics(m *machine) *metrics {
	return &metrics{m, client.NewHistogramVec(client.HistogramOpts{
		Name: "godat_volume_commit_seconds", Help: "From the proposal of a write, whose data has come, until this node, which leads, has applied it.",
		Buckets: client.ExponentialBuckets(50e-6, 2, 18),
	}, []string{"volume"})}
}

// committed observes the writes of a volume.
func (x *metrics) committed(volume uuid) func(time.Duration) {
	b, _ := volume.MarshalText() // it never fails
	of := x.commit.WithLabelValues(string(b))
	return func(d time.Duration) { of.Observe(d.Seconds()) }
}

var described []*client.Desc

// measure makes a metric whose first label is the volume.
func measure(name, help string, labels ...string) *client.Desc {
	d := client.NewDesc("godat_volume_"+name, help, append([]string{"volume"}, labels...), nil)
	described = append(described, d)
	return d
}

var (
	descLed         = measure("has_leader", "Whether this node knows of a leader.")
	descLeads       = measure("leads", "Whether this node leads and serves the disk.")
	descCopies      = measure("copies", "Copies that have what is written now; of the node that leads.")
	descAsked       = measure("copies_asked", "Members that vote; of the node that leads.")
	descRecords     = measure("records", "The last record of this node's log.")
	descLag         = measure("replica_lag_records", "By how many records a replica is behind; of the node that leads.", "replica")
	descOut         = measure("replica_out", "Whether a replica gets no data of writes, since it was too slow; of the node that leads.", "replica")
	descSilent      = measure("replica_silent", "Whether nothing is heard of a replica; of the node that leads.", "replica")
	descDisk        = measure("replica_disk_seconds", "How long a replica's newest write to its disk took to be stable, or has taken so far; of the node that leads.", "replica")
	descOwnDisk     = measure("disk_seconds", "How long this node's newest write to its disk took to be stable, or has taken so far.")
	descFree        = measure("slots_free", "Slots for writes that are free; of the node that leads.")
	descWaiting     = measure("writes_waiting", "Writes that wait for a slot; of the node that leads.")
	descLeft        = measure("rebuild_left_bytes", "What is left of the rebuild of this node's disk.")
	descZeros       = measure("zeros_left_bytes", "Bytes that read as zeros, by a Write Zeroes or a Deallocate, and are still to be written to this node's disk.")
	descRebuilds    = measure("rebuilds_total", "Rebuilds of this node's disk that ended.")
	descRebuilt     = measure("rebuilt_bytes_total", "Bytes that rebuilds of this node's disk have read.")
	descLeaders     = measure("leader_changes_total", "How often somebody came to lead, as this node has seen.")
	descRefusals    = measure("refusals_total", "Calls that this node and others have refused each other, since they are of other volumes, or have other options.")
	descRefusesNow  = measure("refusals", "Reasons for which nodes refuse each other now.")
	descAssociation = measure("associations", "Associations of hosts with this node, of all volumes that it serves.")
)

// Describe implements prometheus.Collector.
func (x *metrics) Describe(to chan<- *client.Desc) {
	x.commit.Describe(to)
	for _, d := range described {
		to <- d
	}
}

// stale is how long a node may owe an answer whose last one is shown.
const stale = 5 * time.Second

// Collect implements prometheus.Collector.
func (x *metrics) Collect(to chan<- client.Metric) {
	x.commit.Collect(to)
	for _, v := range x.m.watched() {
		s, silent := v.status()
		if s.ID == 0 {
			continue // it has ended, or has said nothing yet
		}
		gauge := func(d *client.Desc, v float64, labels ...string) {
			to <- client.MustNewConstMetric(d, client.GaugeValue, v, append([]string{s.Volume}, labels...)...)
		}
		counter := func(d *client.Desc, v uint64) {
			to <- client.MustNewConstMetric(d, client.CounterValue, float64(v), s.Volume)
		}
		gauge(descOwnDisk, v.node.Self().Disk.Newest.Seconds())
		if silent > stale {
			continue // what it said last may be wrong by now
		}
		gauge(descLed, truth(s.Leader != 0))
		gauge(descLeads, truth(s.Serves()))
		gauge(descRecords, float64(s.Last))
		gauge(descLeft, float64(s.Rebuilds-min(s.Rebuilds, s.Rebuilt)))
		gauge(descZeros, float64(s.Zeros))
		gauge(descRefusesNow, float64(len(s.Refusals)))
		gauge(descAssociation, float64(x.m.target.Associations()))
		counter(descRebuilds, s.Counts.Rebuilds)
		counter(descRebuilt, s.Counts.RebuiltBytes)
		counter(descLeaders, s.Counts.Leaders)
		counter(descRefusals, s.Counts.Refusals)
		if !s.Serves() {
			continue
		}
		have, asked, _ := copies(&s)
		gauge(descCopies, float64(have))
		gauge(descAsked, float64(asked))
		gauge(descFree, float64(s.Free))
		gauge(descWaiting, float64(s.Waiting))
		for id, p := range s.Replicas {
			if id != s.ID {
				replica := strconv.FormatUint(id, 10)
				gauge(descLag, float64(s.Last-min(s.Last, p.Match)), replica)
				gauge(descOut, truth(p.Out), replica)
				gauge(descSilent, truth(p.Silent), replica)
				if p.Self != nil && !p.Silent {
					gauge(descDisk, p.Self.Disk.Newest.Seconds(), replica)
				}
			}
		}
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// serve serves the numbers of the volumes and of the adapters at HOST:PORT until ctx ends; nothing without an address.
func (x *metrics) serve(ctx context.Context, addr string, ias ...*dat.IA) (wait func() error, err error) {
	if addr == "" {
		return func() error { return nil }, nil
	}
	registry := client.NewRegistry()
	if err := errors.Join(registry.Register(x), registry.Register(prometheus.New(ias...))); err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, taken(addr, "metrics", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second}))
	s := &http.Server{Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: 20 * time.Second, IdleTimeout: time.Minute}
	ended := make(chan error, 1)
	go serveHTTP(s, l, ended)
	return func() error {
		err := s.Close()
		if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
		return err
	}, nil
}

func serveHTTP(s *http.Server, l net.Listener, ended chan<- error) { ended <- s.Serve(l) }
