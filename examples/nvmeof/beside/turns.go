package beside

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

const (
	size  = 4096 // bytes of a command
	depth = 32   // commands under way
)

// Config says how long to measure.
type Config struct {
	Turns      int           // of each way
	Turn       time.Duration // how long one is
	Processors []int         // measure with so many (GOMAXPROCS), one after the other
}

// way is a way to move blocks. run moves some for a while, and returns how many.
type way struct {
	name string
	run  func(ctx context.Context) (commands int64, err error)
}

// compare lets two ways take turns, and prints the medians of the ratios of their rates,
// and of the commands for a second of the processor time of both ends. The latter tells
// more on a machine that is busy with something else, and less about two processors, on
// which the ends run beside each other.
func compare(ctx context.Context, cfg Config, out io.Writer, a, b way) error {
	var elapsed, used []float64
	for range cfg.Turns {
		first, err := measure(ctx, cfg, a)
		if err != nil {
			return err
		}
		second, err := measure(ctx, cfg, b)
		if err != nil {
			return err
		}
		elapsed = append(elapsed, float64(second.elapsed)/float64(first.elapsed))
		used = append(used, float64(second.used)/float64(max(first.used, 1)))
	}
	slices.Sort(elapsed)
	slices.Sort(used)
	middle, last := cfg.Turns/2, cfg.Turns-1
	_, err := fmt.Fprintf(out, "%s / %s: rate %.2f (%.2f to %.2f in %d turns), by processor time %.2f\n",
		a.name, b.name, elapsed[middle], elapsed[0], elapsed[last], cfg.Turns, used[middle])
	return err
}

// cost is what a command takes.
type cost struct{ elapsed, used time.Duration }

// measure measures a way in one turn.
func measure(ctx context.Context, cfg Config, w way) (cost, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Turn)
	defer cancel()
	begin, before := time.Now(), processorTime()
	n, err := w.run(ctx)
	if err != nil {
		return cost{}, fmt.Errorf("%s: %w", w.name, err)
	}
	n = max(n, 1)
	return cost{time.Since(begin) / time.Duration(n), (processorTime() - before) / time.Duration(n)}, nil
}
