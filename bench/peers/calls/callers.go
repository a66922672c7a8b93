package calls

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// group is callers that make calls of one kind.
type group struct {
	Kind    Kind
	Callers int
	Pause   time.Duration // after each call
	Enough  int64         // calls of the first group, if the time is not over before; 0: the time alone counts
}

// limit is the deadline of a call.
const limit = 30 * time.Second

// lead is how long further groups call before the first begins.
const lead = 200 * time.Millisecond

// callers are the callers of a client.
type callers struct {
	client client
	list   []*caller
	last   tally // of the last turn
}

// caller is a goroutine that calls.
type caller struct {
	client  client
	kind    Kind
	number  int
	noLimit bool
	n       uint64 // calls
	memory  []byte // the request of a put, or room for the answer to a get
	request []byte // of a get
	counts  tally
	took    *hdrhistogram.Histogram
	err     error
}

// dial connects a client whose callers are those of the plan.
func dial(row Row, addr string, plan []group) (*callers, error) {
	var n int
	for _, g := range plan {
		n += g.Callers
	}
	c, err := row.dial(addr, n)
	if err != nil {
		return nil, err
	}
	s := &callers{client: c}
	for _, g := range plan {
		for range g.Callers {
			k := &caller{client: c, kind: g.Kind, number: len(s.list), noLimit: row.NoLimit}
			if k.memory, err = c.memory(k.number, g.Kind.Size); err != nil {
				return nil, errors.Join(err, c.close())
			}
			copy(k.memory, newBody(g.Kind.Size))
			k.request = binary.BigEndian.AppendUint64(nil, uint64(g.Kind.Size))
			s.list = append(s.list, k)
		}
	}
	return s, nil
}

func (s *callers) tally() tally { return s.last }

// turn lets the callers of the plan call, which are the first ones that dial made. The first group calls
// for so long, and the others until it is ready.
func (s *callers) turn(plan []group, duration time.Duration) ([]called, error) {
	for _, k := range s.list {
		k.counts, k.err, k.took = tally{}, nil, hdrhistogram.New(1, int64(10*time.Minute), 3)
	}
	var stop atomic.Bool
	first := plan[0].Callers
	next := first
	var others sync.WaitGroup
	began := time.Now()
	for _, g := range plan[1:] {
		for _, k := range s.list[next : next+g.Callers] {
			others.Go(func() { k.run(g, stop.Load) })
		}
		next += g.Callers
	}
	if len(plan) > 1 {
		time.Sleep(lead)
	}
	var all sync.WaitGroup
	from := time.Now()
	over := func() bool { return time.Since(from) >= duration }
	for _, k := range s.list[:first] {
		all.Go(func() { k.run(plan[0], over) })
	}
	all.Wait()
	wall := time.Since(from)
	stop.Store(true)
	others.Wait()
	groups, err := s.sum(plan)
	if err != nil {
		return nil, err
	}
	for i := range groups {
		groups[i].Wall = time.Since(began)
	}
	groups[0].Wall = wall
	return groups, nil
}

// sum adds up what the callers have done.
func (s *callers) sum(plan []group) (groups []called, err error) {
	s.last = tally{}
	next := 0
	for _, g := range plan {
		took := hdrhistogram.New(1, int64(10*time.Minute), 3)
		for _, k := range s.list[next : next+g.Callers] {
			if k.err != nil {
				return nil, fmt.Errorf("a %v: %w", k.kind, k.err)
			}
			took.Merge(k.took)
			s.last.Calls += k.counts.Calls
			s.last.In += k.counts.In
			s.last.Out += k.counts.Out
			s.last.Deadlines += k.counts.Deadlines
		}
		next += g.Callers
		groups = append(groups, called{Calls: took.TotalCount(), P50: took.ValueAtQuantile(50), P99: took.ValueAtQuantile(99), Max: took.Max()})
	}
	return groups, nil
}

// run makes calls until it is over, at least one.
func (k *caller) run(g group, over func() bool) {
	for n := int64(1); ; n++ {
		began := time.Now()
		if k.err = k.call(); k.err != nil {
			return
		}
		if k.err = k.took.RecordValue(int64(time.Since(began))); k.err != nil {
			return
		}
		if over() || g.Enough > 0 && n >= g.Enough {
			return
		}
		if g.Pause > 0 {
			time.Sleep(g.Pause)
		}
	}
}

// call makes a call, with a deadline if the row has them, and checks and counts it.
func (k *caller) call() error {
	ctx := context.Background()
	if !k.noLimit {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	k.n++
	k.counts.Calls++
	if hasDeadline(ctx) {
		k.counts.Deadlines++
	}
	if k.kind.Get {
		blank(k.memory)
		got, err := k.client.get(ctx, k.number, k.request, k.memory)
		k.counts.Out += int64(len(k.request))
		k.counts.In += int64(got.length)
		if err == nil && !got.isAnswer(k.kind.Size) {
			err = errAnswer
		}
		return err
	}
	binary.BigEndian.PutUint64(k.memory, uint64(k.number)<<48|k.n)
	want := look(k.memory).stamp()
	got, err := k.client.put(ctx, k.number, k.memory)
	k.counts.Out += int64(len(k.memory))
	k.counts.In += shortBytes
	if err == nil && got != want {
		err = errAnswer
	}
	return err
}
