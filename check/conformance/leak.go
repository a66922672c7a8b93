package conformance

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

// remains finds goroutines and descriptors that the process has opened since watch
// and has not closed.
type remains struct {
	goroutines  goleak.Option
	descriptors int
}

func watch() *remains { return &remains{goleak.IgnoreCurrent(), descriptors()} }

// find returns an error if something is left. It waits at most limit for what is
// about to end.
func (w *remains) find(limit time.Duration) error {
	if err := goleak.Find(w.goroutines); err != nil {
		return err
	}
	end := time.Now().Add(limit)
	for descriptors() > w.descriptors {
		if time.Now().After(end) {
			return fmt.Errorf("%d descriptors are open, and there were %d", descriptors(), w.descriptors)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// descriptors counts the open descriptors of the process; 0 where they can't be
// counted.
func descriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// books returns an error if an adapter still has regions, windows, zones or
// mappings.
func books(ia *dat.IA) error {
	s := ia.MemoryStats()
	if s == (mem.Stats{}) {
		return nil
	}
	return fmt.Errorf("left: %d regions of %d bytes, %d windows, %d zones, %d mappings of %d bytes",
		s.Regions, s.Bytes, s.Windows, s.Zones, s.Mapped, s.MappedBytes)
}

// closeAdapter closes an adapter, and returns an error if something was left on it
// before, or is left in its books after. An adapter that is closed already is no
// error.
func closeAdapter(ia *dat.IA) error {
	err := ia.CloseGraceful()
	if errors.Is(err, hw.ErrInvalidHandle) {
		err = nil
	}
	return errors.Join(err, ia.Close(), books(ia))
}

// watchLeaks makes the case fail if it leaves something behind.
func watchLeaks(t *testing.T, p Provider) {
	w := watch()
	t.Cleanup(func() {
		if t.Failed() {
			return // a case that failed may leave anything
		}
		assert.NoError(t, w.find(patience))
		if p.After != nil {
			p.After(t)
		}
	})
}

// closeAll closes the case's objects, the last first, and then its adapters, which
// refuse if something is left. It also closes again what the case has closed
// itself: that must do nothing.
func (r *rig) closeAll() {
	if r.Failed() {
		r.giveUp()
		return
	}
	for i := len(r.undo) - 1; i >= 0; i-- {
		assert.NoError(r, r.undo[i]())
	}
	for _, ia := range r.ias {
		assert.NoError(r, closeAdapter(ia))
	}
}

// giveUp closes everything that a failed case has made, and ignores errors.
func (r *rig) giveUp() {
	for _, ia := range r.ias {
		_ = ia.Close()
	}
	for i := len(r.undo) - 1; i >= 0; i-- {
		_ = r.undo[i]()
	}
}
