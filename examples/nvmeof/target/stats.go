package target

import (
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/nvme"
)

// Counters count commands and bytes.
type Counters struct {
	Queues                  uint64 // connected, ever
	Reads, Writes           uint64 // commands that succeeded
	Others                  uint64 // other commands that succeeded
	Failures                uint64 // commands that were completed with an error
	BytesRead, BytesWritten uint64
}

// Latency is how long commands took: from the event that brought a command, or from that
// of the first one that came with it, until its completion was posted. Values are exact to
// one part in a hundred.
type Latency struct {
	Count                            int64
	Mean, Median, P99, P999, Longest time.Duration
}

// QueueStats are what a queue has done since it was connected.
type QueueStats struct {
	Address    string // of the host
	Host       string // its name
	Controller uint16
	Queue      uint16 // 0 is the admin queue
	Counters
	Read, Write, Other Latency
}

// DiskStats are what a target serves as a namespace.
type DiskStats struct {
	Number    uint32 // the id of the namespace
	ID        identity.ID
	Bytes     uint64
	BlockSize int
	State     nvme.ANAState
	Queues    int // that have its memory registered
}

// Stats are what a target has done since it began, and what the queues that are
// connected have.
type Stats struct {
	Counters
	Read, Write, Other Latency
	Queues             []QueueStats // in no order
	Disks              []DiskStats  // by number
}

// The kinds of commands whose latencies are kept apart.
const (
	kindRead = iota
	kindWrite
	kindOther // also those that failed
	kinds
)

// finished is a command that was completed since the last flush.
type finished struct {
	begun   time.Duration // as now
	kind    uint8
	failed  bool
	neutral bool // it waited for an event: its latency means nothing
	bytes   uint32
}

// record has counters and latencies.
type record struct {
	Counters
	latency [kinds]*hdrhistogram.Histogram // in nanoseconds
}

// now is a point in time, after 0.
func now() time.Duration { return time.Since(began) }

var began = time.Now()

const (
	shortest = int64(time.Microsecond)
	longest  = int64(100 * time.Second) // longer ones count as that
)

func newRecord() record {
	var r record
	for i := range r.latency {
		r.latency[i] = hdrhistogram.New(shortest, longest, 2)
	}
	return r
}

// tally is the number of the writes and reads, in this order, that came and were completed
// together, and their bytes.
type tally struct{ count, bytes [2]uint64 }

// addQuick adds commands that took the same time.
func (r *record) addQuick(t *tally, took time.Duration) {
	r.Writes += t.count[0]
	r.BytesWritten += t.bytes[0]
	r.Reads += t.count[1]
	r.BytesRead += t.bytes[1]
	for i, kind := range [2]int{kindWrite, kindRead} {
		if t.count[i] != 0 {
			_ = r.latency[kind].RecordValues(min(int64(took), longest), int64(t.count[i])) // never out of range
		}
	}
}

// addAll adds commands that were completed at a time. Those that came together are one
// look into a histogram.
func (r *record) addAll(all []finished, at time.Duration) {
	same := 0
	for i := range all {
		c := &all[i]
		r.count(c)
		same++
		if i+1 < len(all) && c.isLike(&all[i+1]) {
			continue
		}
		if !c.neutral {
			_ = r.latency[c.kind].RecordValues(min(int64(at-c.begun), longest), int64(same)) // never out of range
		}
		same = 0
	}
}

// isLike reports whether two commands that were completed together have the same latency.
func (c *finished) isLike(o *finished) bool {
	return c.kind == o.kind && c.neutral == o.neutral && c.begun == o.begun
}

// count counts a command.
func (r *record) count(c *finished) {
	switch {
	case c.failed:
		r.Failures++
	case c.kind == kindRead:
		r.Reads++
		r.BytesRead += uint64(c.bytes)
	case c.kind == kindWrite:
		r.Writes++
		r.BytesWritten += uint64(c.bytes)
	default:
		r.Others++
	}
}

// merge adds what another record has.
func (r *record) merge(o *record) {
	r.Queues += o.Queues
	r.Reads += o.Reads
	r.Writes += o.Writes
	r.Others += o.Others
	r.Failures += o.Failures
	r.BytesRead += o.BytesRead
	r.BytesWritten += o.BytesWritten
	for i, h := range r.latency {
		h.Merge(o.latency[i])
	}
}

// of is the summary of one kind.
func (r *record) of(kind int) Latency {
	h := r.latency[kind]
	if h.TotalCount() == 0 {
		return Latency{}
	}
	at := func(percent float64) time.Duration { return time.Duration(h.ValueAtQuantile(percent)) }
	return Latency{
		Count: h.TotalCount(), Mean: time.Duration(h.Mean()), Median: at(50), P99: at(99), P999: at(99.9), Longest: time.Duration(h.Max()),
	}
}

// queueStats is the record of a connected queue. The queue adds to it once for each batch,
// so the lock is rarely waited for.
type queueStats struct {
	mu    sync.Mutex
	about QueueStats // without the numbers
	record
}

// account adds the commands that were completed since the last flush, which was just now.
func (q *queue) account() {
	if q.quick.count != [2]uint64{} || len(q.finished) != 0 {
		q.stats.add(&q.quick, q.batch, q.finished)
		q.quick, q.finished = tally{}, q.finished[:0]
	}
	q.batch = 0
}

// add adds the commands of a batch that was posted just now: those that came in it, and
// others.
func (s *queueStats) add(quick *tally, begun time.Duration, others []finished) {
	at := now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addQuick(quick, at-begun)
	s.addAll(others, at)
}

// statistics has the records of a target. Its methods may be called from any goroutine.
type statistics struct {
	mu   sync.Mutex
	live map[*queueStats]struct{}
	past record // of queues that have ended
}

func (s *statistics) init() { s.live, s.past = make(map[*queueStats]struct{}), newRecord() }

// begin adds the record of a queue that was connected.
func (s *statistics) begin(q *queueStats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Queues = 1
	s.live[q] = struct{}{}
}

// end adds the record of a queue to those that have ended.
func (s *statistics) end(q *queueStats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, begun := s.live[q]; begun {
		s.past.merge(&q.record)
		delete(s.live, q)
	}
}

// Stats returns the statistics. It may be called at any time.
func (t *Target) Stats() Stats {
	s := &t.statistics
	s.mu.Lock()
	defer s.mu.Unlock()
	all := newRecord()
	all.merge(&s.past)
	var queues []QueueStats
	for q := range s.live {
		q.mu.Lock()
		all.merge(&q.record)
		one := q.about
		one.Counters, one.Read, one.Write, one.Other = q.Counters, q.of(kindRead), q.of(kindWrite), q.of(kindOther)
		q.mu.Unlock()
		queues = append(queues, one)
	}
	return Stats{Counters: all.Counters, Read: all.of(kindRead), Write: all.of(kindWrite), Other: all.of(kindOther), Queues: queues, Disks: t.namespaces.stats()}
}

// note notes that a command is completed.
func (q *queue) note(c *command, status nvme.Status) {
	if kind := c.sqe.Opcode - nvme.IOWrite; kind <= 1 && c.begun == q.batch && status == nvme.Success && q.asked.QueueID != 0 {
		q.quick.count[kind]++
		q.quick.bytes[kind] += uint64(c.sqe.Data.Length)
		return
	}
	n := len(q.finished)
	q.finished = slices.Grow(q.finished, 1)[:n+1]
	f := &q.finished[n]
	f.begun, f.kind, f.failed, f.neutral, f.bytes = c.begun, kindOther, status.Code() != nvme.Success, false, c.sqe.Data.Length
	switch {
	case q.asked.QueueID == 0:
		f.neutral = c.sqe.Opcode == nvme.AdminAsyncEvent
	case f.failed:
	case c.sqe.Opcode == nvme.IORead:
		f.kind = kindRead
	case c.sqe.Opcode == nvme.IOWrite:
		f.kind = kindWrite
	}
}
