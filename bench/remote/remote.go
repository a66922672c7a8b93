// Package remote measures lanes in another process, as package load does in this one.
package remote

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"godat/bench/ends"
	"godat/bench/lane"
	"godat/bench/load"
)

// Lane is a lane of the other process, for one producer.
type Lane struct {
	Name      string                                   `json:"name"`
	RoundTrip bool                                     `json:"roundTrip"` // what is taken are answers
	Does      string                                   `json:"does"`      // what it does, and what it does not
	Open      func(size, depth int) (lane.Lane, error) `json:"-"`
}

// What the process is asked for.
const (
	doList   = "list"   // of its lanes
	doRefuse = "refuse" // whether the lane refuses the load
	doTurn   = "turn"   // to measure a turn
	doClose  = "close"
)

// request asks the process for something.
type request struct {
	Do       string // one of the words above
	Lane     int    // its place in the list
	Size     int
	Depth    int
	Rate     load.Rate
	Duration time.Duration
}

// reply is the answer.
type reply struct {
	Lanes  []Lane
	Result result
}

// result is a load.Result whose histogram can be written.
type result struct {
	load.Result
	Latency *hdrhistogram.Snapshot
}

func (r result) read() load.Result {
	r.Result.Latency = hdrhistogram.Import(r.Latency)
	return r.Result
}

// served are the lanes of this process, and those that a request has named.
type served struct {
	lanes []Lane
	open  map[string]*load.Driver
}

// Serve answers requests until one says that it is over, and then closes the lanes that it has opened. If the
// requests end before, it calls gone, which ends the process.
func Serve(in io.Reader, out io.Writer, gone func(), lanes []Lane) error {
	s := &served{lanes, map[string]*load.Driver{}}
	return ends.Serve(in, out, gone, func(ask request) (any, bool, error) {
		say, err := s.answer(ask)
		return say, ask.Do == doClose, err
	})
}

func (s *served) answer(ask request) (say reply, err error) {
	switch ask.Do {
	case doList:
		say.Lanes = s.lanes
		return say, nil
	case doClose:
		for _, d := range s.open {
			err = errors.Join(err, d.Close())
		}
		return say, err
	}
	d, err := s.driver(ask)
	if err != nil {
		return say, err
	}
	ld := load.Load{Rate: ask.Rate, Depth: ask.Depth, Duration: ask.Duration}
	if err = d.Refuse(ld); err != nil || ask.Do == doRefuse {
		return say, err
	}
	res, err := d.Run(ld)
	if err == nil {
		say.Result = result{res, res.Latency.Export()}
	}
	return say, err
}

// driver is that of the lane that a request names, which is opened for the first one.
func (s *served) driver(ask request) (*load.Driver, error) {
	if ask.Lane < 0 || ask.Lane >= len(s.lanes) || ask.Size < 1 || ask.Depth < 1 {
		return nil, fmt.Errorf("lane %d, %d bytes, %d outstanding: there are %d lanes", ask.Lane, ask.Size, ask.Depth, len(s.lanes))
	}
	key := fmt.Sprint(ask.Lane, ask.Size, ask.Depth)
	if d := s.open[key]; d != nil {
		return d, nil
	}
	l, err := s.lanes[ask.Lane].Open(ask.Size, ask.Depth)
	if err != nil {
		return nil, err
	}
	s.open[key] = load.NewDriver(l, 1)
	return s.open[key], nil
}
