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
	Turns int           // of each way
	Turn  time.Duration // how long one is
}

// way is a way to move blocks. run moves some for a while, and returns how many.
type way struct {
	name string
	run  func(ctx context.Context) (commands int64, err error)
}

// compare lets two ways take turns, and prints the median of the ratio of their rates.
func compare(ctx context.Context, cfg Config, out io.Writer, a, b way) error {
	var ratios []float64
	for range cfg.Turns {
		first, err := rate(ctx, cfg, a)
		if err != nil {
			return err
		}
		second, err := rate(ctx, cfg, b)
		if err != nil {
			return err
		}
		ratios = append(ratios, first/second)
	}
	slices.Sort(ratios)
	_, err := fmt.Fprintf(out, "%s / %s: %.2f (%.2f to %.2f in %d turns)\n",
		a.name, b.name, ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1], len(ratios))
	return err
}

// rate is a way's commands per second in one turn.
func rate(ctx context.Context, cfg Config, w way) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Turn)
	defer cancel()
	begin := time.Now()
	n, err := w.run(ctx)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", w.name, err)
	}
	return float64(max(n, 1)) / time.Since(begin).Seconds(), nil
}
