package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	_ "godat/hw/ibv" // beside the providers that every program has
	dat "godat/runtime"
)

// providers are those of this program.
var providers = []string{"loop", "iwarp", "ibv"}

const (
	trips     = 100
	probeTime = 10 * time.Second
)

// probe makes round trips over a provider to address, or if that is empty to itself.
func probe(ctx context.Context, provider, address string) line {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	l := line{Check: provider + " to " + address, State: fine}
	if address == "" {
		l.Check += "itself"
	}
	took, err := overProvider(ctx, provider, address)
	switch {
	case errors.Is(err, hw.ErrProviderNotFound): // no failure of the machine's
		l.State, l.Says, l.Do = note, err.Error(), "nothing, if no program shall run on devices"
	case err != nil:
		l.State, l.Says, l.Do = bad, err.Error(), "mend what lines above name; let the firewall pass the packets; run doctor --serve on the other host"
	default:
		l.Says = fmt.Sprintf("half of %d round trips took up to %v, the slowest %v", trips, took[trips/2].Round(100), took[trips-1].Round(100))
	}
	return l
}

// overProvider opens the provider for the round trips.
func overProvider(ctx context.Context, provider, address string) (took []time.Duration, err error) {
	ia, err := dat.Open(ctx, provider)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ia.Close()) }()
	if address == "" {
		ln, err := ia.Listen(ctx, "", dat.ConnConfig{})
		if err != nil {
			return nil, err
		}
		var answering sync.WaitGroup
		answering.Add(1)
		go answer(ln, &answering, io.Discard)
		defer answering.Wait()
		defer ln.Close()
		address = ln.Addr()
	}
	c, err := ia.Dial(ctx, address, dat.ConnConfig{})
	if err != nil {
		return nil, err
	}
	took, err = roundTrips(ctx, c)
	return took, errors.Join(err, c.Close())
}

// roundTrips returns how long each took, sorted.
func roundTrips(ctx context.Context, c *dat.Conn) (took []time.Duration, err error) {
	for range trips {
		start := time.Now()
		if err := c.SendBytes([]byte("doctor")); err != nil {
			return nil, err
		}
		b, err := c.Receive(ctx)
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(start))
		c.Release(b)
	}
	slices.Sort(took)
	return took, nil
}

// answer answers each message with itself, until the listener is closed.
func answer(ln *dat.Listener, done *sync.WaitGroup, out io.Writer) {
	defer done.Done()
	for {
		select {
		case ev := <-ln.Requests():
			if r := ep.RequestOf(ev); r != nil {
				_, _ = ln.Accept(r, nil) // an error concerns that client alone
			}
		case ev := <-ln.Events():
			switch c := dat.ConnOf(ev); {
			case ev.Number == event.Closed:
				return
			case ev.Ended():
				fmt.Fprintln(out, c, "has ended")
				_ = c.Close()
			case ev.Op == hw.OpRecv:
				_ = c.Send(c.Message(ev)) // an error concerns c alone
			}
		}
	}
}

// serve answers over each provider that opens, until ctx ends.
func serve(ctx context.Context, address string, out io.Writer) error {
	var answering sync.WaitGroup
	defer answering.Wait()
	var why []error
	for _, provider := range providers[1:] {
		ia, err := dat.Open(ctx, provider)
		if err != nil {
			why = append(why, err)
			continue
		}
		defer ia.Close()
		ln, err := ia.Listen(ctx, address, dat.ConnConfig{})
		if err != nil {
			why = append(why, err)
			continue
		}
		answering.Add(1)
		go answer(ln, &answering, out)
		fmt.Fprintln(out, provider, "answers at", ln.Addr())
	}
	if err := errors.Join(why...); len(why) == len(providers[1:]) {
		return err
	}
	<-ctx.Done()
	return nil
}
