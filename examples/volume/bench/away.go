package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// length is a number of bytes, as an option has it.
type length int

func (l *length) String() string { return strconv.Itoa(int(*l)) }

// Set implements flag.Value.
func (l *length) Set(text string) error {
	shift := 0
	for i, unit := range []string{"K", "M", "G"} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			text, shift = number, 10*(i+1)
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n<<shift>>shift != n {
		return errors.New("it is a number, or one with K, M or G behind it")
	}
	*l = length(n << shift)
	return nil
}

// part is a part of a load.
type part struct {
	Writes int           `json:"writes"`
	Gap    time.Duration `json:"gap"` // the longest time in which no write was answered
}

// parts divides a load by when its writes were answered. A time in which none was belongs to the part in which it ended.
func parts(answered, ends []time.Duration) []part {
	all := make([]part, len(ends))
	slices.Sort(answered)
	last := time.Duration(0)
	for _, at := range answered {
		if i := slices.IndexFunc(ends, func(end time.Duration) bool { return at <= end }); i >= 0 {
			all[i].Writes++
			all[i].Gap = max(all[i].Gap, at-last)
		}
		last = at
	}
	return all
}

var errBehind = errors.New("the follower that was away has not all that was written, as long as the load went on")

// away stops a follower for a time, and says what that costs. It loads the leader for as long before, and behind it until the
// follower has all.
func away(o *options, out io.Writer) (err error) {
	const writeLen, writers = 64 << 10, 24
	s, err := newSystem(kindVolume, o.disk, o.provider, slog.LevelError, int(o.size))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	leader, first, err := s.leader()
	if err != nil {
		return err
	}
	if o.size != diskLen {
		if _, err = leader.ask(question{Bytes: 1 << 20, Writers: 8, Fill: true}); err != nil {
			return err
		}
	}
	follower := s.processes[0]
	if follower == leader {
		follower = s.processes[1]
	}
	var stopping errgroup.Group
	stopping.Go(func() error { return follower.stop(o.away, o.away) })
	ends := []time.Duration{o.away, 2 * o.away}
	a, err := leader.ask(question{Bytes: writeLen, Writers: writers, Time: 5 * o.away, Parts: ends, Whole: true})
	if err = errors.Join(err, stopping.Wait()); err != nil {
		return err
	}
	f, err := follower.ask(question{})
	if err != nil {
		return err
	}
	_, term, err := s.leader()
	if err != nil {
		return err
	}
	for i, what := range []string{"before", "while it is away", "until it has all", "since"} {
		fmt.Fprintf(out, "%s: %d writes, none answered for %v\n", what, a.Parts[i].Writes, a.Parts[i].Gap.Round(time.Millisecond))
	}
	away := a.Parts[1].Writes
	over := func(writes int) float64 { return float64(f.Copied) / float64(writes*writeLen) }
	fmt.Fprintf(out, "%d resyncs, which copied %.2f of the bytes that were written while it was away, and %.2f of those until it had all; %d elections\n",
		f.Rebuilds, over(away), over(away+a.Parts[2].Writes), term-first)
	switch {
	case a.Whole:
		return nil
	case term != first:
		return errElection
	}
	return errBehind
}
