// Package remote measures lanes in another process, as package load does in this one.
//
// The two sides exchange lines of JSON over the other process's input and output. First
// the process that has the lanes lists them. Then it answers each request with a reply,
// until its input ends.
package remote

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"godat/bench/lane"
	"godat/bench/load"
)

// Lane is a lane of the other process, for one producer.
type Lane struct {
	Name      string                                   `json:"name"`
	RoundTrip bool                                     `json:"roundTrip"` // what is taken are answers
	Writes    string                                   `json:"writes"`    // what a program writes
	Does      string                                   `json:"does"`      // and what it does not
	Open      func(size, depth int) (lane.Lane, error) `json:"-"`
}

// request asks for one turn.
type request struct {
	Lane     int           `json:"lane"` // its place in the list
	Size     int           `json:"size"`
	Depth    int           `json:"depth"`
	Rate     load.Rate     `json:"rate"`
	Duration time.Duration `json:"duration"`
	// Only says that the lane is asked whether it refuses the load.
	Only bool `json:"only,omitempty"`
}

// reply is the answer.
type reply struct {
	Error   string `json:"error,omitempty"`
	Refused string `json:"refused,omitempty"`
	Result  result `json:"result"`
}

// result is a load.Result whose histogram can be written.
type result struct {
	load.Result
	Latency *hdrhistogram.Snapshot
}

func newResult(r load.Result) result {
	return result{r, r.Latency.Export()}
}

func (r result) read() (load.Result, error) {
	if r.Latency == nil {
		return load.Result{}, errors.New("a result without a histogram")
	}
	r.Result.Latency = hdrhistogram.Import(r.Latency)
	return r.Result, nil
}

// opened is a lane that a request has named.
type opened struct {
	lane   lane.Lane
	driver *load.Driver
}

// Serve lists the lanes and answers requests until in ends. It closes the lanes that it
// has opened.
func Serve(in io.Reader, out io.Writer, lanes []Lane) (err error) {
	to, from := json.NewEncoder(out), json.NewDecoder(bufio.NewReader(in))
	if err := to.Encode(lanes); err != nil {
		return err
	}
	all := map[string]opened{}
	defer func() {
		for _, o := range all {
			err = errors.Join(err, o.lane.Close())
		}
	}()
	for {
		var ask request
		if err := from.Decode(&ask); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var say reply
		if err := answer(lanes, all, ask, &say); err != nil {
			say.Error = err.Error()
		}
		if err := to.Encode(say); err != nil {
			return err
		}
	}
}

// answer opens the lane if no request before has, and measures a turn.
func answer(lanes []Lane, all map[string]opened, ask request, say *reply) error {
	if ask.Lane < 0 || ask.Lane >= len(lanes) || ask.Size < 1 || ask.Depth < 1 {
		return fmt.Errorf("lane %d, %d bytes, %d outstanding: there are %d lanes", ask.Lane, ask.Size, ask.Depth, len(lanes))
	}
	key := fmt.Sprint(ask.Lane, ask.Size, ask.Depth)
	o, ok := all[key]
	if !ok {
		l, err := lanes[ask.Lane].Open(ask.Size, ask.Depth)
		if err != nil {
			return err
		}
		o = opened{l, load.NewDriver(l, 1)}
		all[key] = o
	}
	ld := load.Load{Rate: ask.Rate, Depth: ask.Depth, Duration: ask.Duration}
	if why := o.driver.Refuse(ld); why != nil {
		say.Refused = why.Error()
		return nil
	}
	if ask.Only {
		return nil
	}
	res, err := o.driver.Run(ld)
	if err == nil {
		say.Result = newResult(res)
	}
	return err
}
