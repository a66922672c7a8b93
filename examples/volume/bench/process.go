package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"godat/examples/volume/raftlog"
)

// asNode has the settings of a process that is a node.
const asNode = "VOLUME_BENCH_NODE"

const (
	kindVolume = "volume"
	kindTCP    = "tcp"

	nodes    = 3
	diskLen  = 64 << 20 // unless -size says otherwise
	patience = 60 * time.Second
)

// settings are those of a node.
type settings struct {
	Kind     string
	ID       uint64
	Peers    raftlog.Members
	Dir      string
	Provider string
	Log      slog.Level
	Size     int // of the disk
}

// question is asked of a node: load it, or say what it is.
type question struct {
	Bytes   int             `json:"bytes"` // 0 for a status
	Writers int             `json:"writers"`
	Time    time.Duration   `json:"time"`
	Fill    bool            `json:"fill,omitempty"`  // write each block once, whatever the time
	Parts   []time.Duration `json:"parts,omitempty"` // of the load, when they end
	Whole   bool            `json:"whole,omitempty"` // two parts more: until all nodes have all, and, if Time has not passed then, what is left of it
}

// answer is a node's.
type answer struct {
	Leads     bool          `json:"leads"`
	Term      uint64        `json:"term"`
	Processor time.Duration `json:"processor"` // of the process, up to now
	Commits   int           `json:"commits"`   // of the load
	Took      time.Duration `json:"took"`
	Longest   time.Duration `json:"longest"`
	Error     string        `json:"error"`
	Parts     []part        `json:"parts,omitempty"` // of the load
	Rebuilds  int           `json:"rebuilds"`
	Copied    int           `json:"copied"` // bytes of all rebuilds
	Whole     bool          `json:"whole"`  // all nodes have all, as this one knows, which leads
}

// commits is a node of either kind.
type commits interface {
	// writer is for one goroutine.
	writer() func(off int, data []byte) error
	status() (leads bool, term uint64)
	rebuilt() (times, bytes int)
	whole() bool
	close() error
}

// serveNode is a process that is a node. It answers on its output the questions of its input, and ends with it.
func serveNode(text string) error {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	open := openVolume
	if s.Kind == kindTCP {
		open = openTCP
	}
	c, err := open(context.Background(), s)
	if err != nil {
		return err
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for err == nil {
		var q question
		if err = in.Decode(&q); err == nil {
			err = out.Encode(do(c, s.Size, q))
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, c.close())
}

// do answers a question.
func do(c commits, size int, q question) (a answer) {
	if q.Bytes != 0 {
		if err := a.load(c, size, q); err != nil {
			a.Error = err.Error()
		}
	}
	a.Leads, a.Term = c.status()
	a.Rebuilds, a.Copied = c.rebuilt()
	a.Whole = c.whole()
	var err error
	if a.Processor, err = processorTime(); err != nil {
		a.Error = err.Error()
	}
	return a
}

// load loads a node. All blocks of a disk differ.
func (a *answer) load(c commits, size int, q question) error {
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		took   []time.Duration
		ends   []time.Duration // since the load began
		failed error
		filled atomic.Int64
	)
	begun := time.Now()
	w := &watch{c: c, begun: begun, from: q.Time}
	if q.Whole {
		w.from = q.Parts[len(q.Parts)-1]
		all.Go(w.run)
	}
	for i := range q.Writers {
		all.Go(func() {
			r, data, write := rand.New(rand.NewPCG(uint64(i), uint64(begun.UnixNano()))), make([]byte, q.Bytes), c.writer()
			var mine, mineEnds []time.Duration
			next := func() (block int, ok bool) {
				return r.IntN(size / q.Bytes), time.Since(begun) < q.Time || q.Whole && !w.ended.Load()
			}
			if q.Fill {
				next = func() (block int, ok bool) {
					block = int(filled.Add(1)) - 1
					return block, block < size/q.Bytes
				}
			}
			var err error
			before := begun
			for block, ok := next(); err == nil && ok; block, ok = next() {
				for at := 0; at < len(data); at += 512 {
					data[at], data[at+1] = byte(r.Uint32()), byte(at>>9)
				}
				err = write(block*q.Bytes, data)
				now := time.Now()
				mine, mineEnds, before = append(mine, now.Sub(before)), append(mineEnds, now.Sub(begun)), now
			}
			mu.Lock()
			defer mu.Unlock()
			took, ends, failed = append(took, mine...), append(ends, mineEnds...), cmp.Or(failed, err)
		})
	}
	all.Wait()
	a.Commits, a.Took = len(took), time.Since(begun)
	if len(took) == 0 {
		return cmp.Or(failed, errNothing)
	}
	slices.Sort(took)
	a.Longest = took[len(took)*99/100]
	if q.Whole {
		q.Parts = append(q.Parts, w.late, math.MaxInt64)
	}
	a.Parts = parts(ends, q.Parts)
	return failed
}

// watch watches nodes that a load writes to.
type watch struct {
	c     commits
	begun time.Time
	from  time.Duration // what was before does not count
	late  time.Duration // since the load began, when not all nodes had all for the last time
	ended atomic.Bool
}

// mostWhole is how long a node may take until it has all.
const mostWhole = 5 * time.Minute

// run looks until all nodes have all, or the node leads no more, and so does not know.
func (w *watch) run() {
	defer w.ended.Store(true)
	w.late = w.from
	time.Sleep(time.Until(w.begun.Add(w.from)))
	const still = time.Second // a node that was away is not missed at once
	for since := time.Duration(0); since-w.late < still && since < w.from+mostWhole; time.Sleep(10 * time.Millisecond) {
		if since = time.Since(w.begun); !w.c.whole() {
			w.late = since
		}
		if leads, _ := w.c.status(); !leads {
			return
		}
	}
}

var errNothing = errors.New("the load wrote nothing")

// system is three processes.
type system struct {
	dir       string
	processes []*process
}

type process struct {
	*exec.Cmd
	to  io.WriteCloser
	in  *json.Encoder
	out *json.Decoder
}

// newSystem starts three nodes with a new disk, in a directory of their own.
func newSystem(kind, dir, provider string, log slog.Level, size int) (s *system, err error) {
	s = &system{}
	if s.dir, err = os.MkdirTemp(dir, "volume-bench-"); err != nil {
		return nil, err
	}
	peers := make(raftlog.Members)
	for id := uint64(1); id <= nodes; id++ {
		at, err := freeAddress()
		if err != nil {
			return nil, errors.Join(err, s.end())
		}
		peers[id] = raftlog.Member{Addr: at}
	}
	for id := uint64(1); id <= nodes; id++ {
		if err := s.start(settings{kind, id, peers, filepath.Join(s.dir, fmt.Sprint(id)), provider, log, size}); err != nil {
			return nil, errors.Join(err, s.end())
		}
	}
	return s, nil
}

// freeAddress is one at which nothing listens. No system gives its port to who asks for any, so that none takes it before
// the node does.
func freeAddress() (at string, err error) {
	for range 64 {
		at = fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000))
		l, failed := net.Listen("tcp", at)
		if err = failed; err == nil {
			return at, l.Close()
		}
	}
	return "", err
}

func (s *system) start(of settings) error {
	text, err := json.Marshal(of)
	if err != nil {
		return err
	}
	p := &process{Cmd: exec.Command(os.Args[0])}
	p.Env, p.Stderr = append(os.Environ(), asNode+"="+string(text)), os.Stderr
	if p.to, err = p.StdinPipe(); err != nil {
		return err
	}
	from, err := p.StdoutPipe()
	if err != nil {
		return err
	}
	p.in, p.out = json.NewEncoder(p.to), json.NewDecoder(bufio.NewReader(from))
	if err := p.Start(); err != nil {
		return err
	}
	s.processes = append(s.processes, p)
	return nil
}

// end ends the processes, and removes their files.
func (s *system) end() error {
	var errs []error
	for _, p := range s.processes {
		errs = append(errs, p.to.Close(), p.Wait())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

func (p *process) ask(q question) (answer, error) {
	if err := p.in.Encode(q); err != nil {
		return answer{}, err
	}
	var a answer
	if err := p.out.Decode(&a); err != nil {
		return a, fmt.Errorf("a node has ended: %w", err)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

var errNoLeader = errors.New("nobody leads")

// leader waits for a node that leads.
func (s *system) leader() (leader *process, term uint64, err error) {
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(20 * time.Millisecond) {
		for _, p := range s.processes {
			a, err := p.ask(question{})
			if err != nil || a.Leads {
				return p, a.Term, err
			}
		}
	}
	return nil, 0, errNoLeader
}

// processor is the processor time of all processes, up to now.
func (s *system) processor() (total time.Duration, err error) {
	for _, p := range s.processes {
		a, err := p.ask(question{})
		if err != nil {
			return 0, err
		}
		total += a.Processor
	}
	return total, nil
}

// turn is one turn of a row. It is made again when the leader changes.
func (s *system) turn(r row, long time.Duration) (x result, err error) {
	for range 10 {
		leader, _, err := s.leader()
		if err != nil {
			return x, err
		}
		before, err := s.processor()
		if err != nil {
			return x, err
		}
		a, err := leader.ask(question{Bytes: r.bytes, Writers: r.writers, Time: long})
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v; again\n", r, err)
			continue
		}
		after, err := s.processor()
		if err != nil {
			return x, err
		}
		return result{int(float64(a.Commits) / a.Took.Seconds()), a.Longest, (after - before) / time.Duration(a.Commits)}, nil
	}
	return x, errNoLeader
}
