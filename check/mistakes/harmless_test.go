package mistakes

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/hw"
	dat "godat/runtime"
)

// harmless are what a newcomer may well do: it has no effect, and no error.
var harmless = map[string]func(*desk) error{
	"a region that is freed twice": func(d *desk) error {
		r := d.region(8, hw.LocalRead)
		return errors.Join(r.Free(), r.Free())
	},
	"a connection that is closed twice": func(d *desk) error { return errors.Join(d.client.Close(), d.client.Close()) },
	"a listener that is closed twice":   func(d *desk) error { return errors.Join(d.ln.Close(), d.ln.Close()) },
	"an adapter that is closed twice":   func(d *desk) error { return errors.Join(d.ia.Close(), d.ia.Close()) },
	"a region that is never freed": func(d *desk) error {
		d.region(1<<16, hw.LocalRead|hw.LocalWrite)
		return d.ia.Close()
	},
	"a Release of nil": func(d *desk) error {
		d.client.Release(nil)
		return nil
	},
	"Shutdown behind Close": func(d *desk) error { return errors.Join(d.client.Close(), d.client.Shutdown(d.ctx)) },
	"the channel of events, read by two goroutines": func(d *desk) error {
		const messages = 4
		var got, readers sync.WaitGroup
		got.Add(messages)
		ctx, stop := context.WithCancel(d.ctx)
		for range 2 {
			readers.Go(func() {
				for {
					select {
					case ev := <-d.server.Events():
						d.server.Release(d.server.Message(ev))
						got.Done()
					case <-ctx.Done():
						return
					}
				}
			})
		}
		var errs error
		for range messages {
			errs = errors.Join(errs, d.client.SendBytes([]byte("hello")))
		}
		got.Wait()
		stop()
		readers.Wait()
		return errs
	},
}

func TestWhatDoesNoHarmIsNoError(t *testing.T) {
	for name, at := range providers {
		provider, _, _ := strings.Cut(name, ":")
		for what, do := range harmless {
			t.Run(provider+"/"+what, func(t *testing.T) {
				assert.NoError(t, do(newDesk(t, name, at, dat.ConnConfig{Depth: 4, Message: 64})))
			})
		}
	}
}
