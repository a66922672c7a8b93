package archive

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"godat/examples/blockstore/client"
	"godat/examples/blockstore/report"
)

// Dialer makes a link to the server.
type Dialer func(context.Context) (*client.Link, error)

// crew is several links that work on the same files.
type crew struct {
	links []*client.Link
	next  atomic.Int64 // the next file that no link has taken
}

// hire makes a crew of n links.
func hire(ctx context.Context, dial Dialer, n int) (*crew, error) {
	c := &crew{}
	for range n {
		l, err := dial(ctx)
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
		c.links = append(c.links, l)
	}
	return c, nil
}

func (c *crew) close() error {
	var errs []error
	for _, l := range c.links {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// take takes one of n files; false when all are taken.
func (c *crew) take(n int) (int, bool) {
	i := int(c.next.Add(1) - 1)
	return i, i < n
}

// each runs work on every link at the same time. The first error ends the others.
func (c *crew) each(ctx context.Context, work func(context.Context, *client.Link) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, l := range c.links {
		group.Go(func() error { return work(ctx, l) })
	}
	return group.Wait()
}

// phase sums up the work of the links since began.
func (c *crew) phase(name string, files int, bytes int64, began time.Time) report.Phase {
	p := report.Phase{Name: name, Files: files, Bytes: bytes, Took: time.Since(began), Latency: report.NewLatency()}
	for _, l := range c.links {
		p.Latency.Merge(l.Latency)
	}
	return p
}
