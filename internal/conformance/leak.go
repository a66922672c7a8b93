package conformance

import (
	"os"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"godat/hw"
	dat "godat/runtime"
)

// watchLeaks has the case fail that leaves something behind.
func (r *rig) watchLeaks() {
	before, now := descriptors(), goleak.IgnoreCurrent()
	r.Cleanup(func() {
		if r.Failed() {
			return // what is left then is no news
		}
		goleak.VerifyNone(r, now)
		assert.Eventually(r, func() bool { return descriptors() <= before }, patience, time.Millisecond,
			"descriptors are left")
		if r.p.After != nil {
			r.p.After(r)
		}
	})
}

// descriptors counts what the process has open, or 0 where that can't be told.
func descriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// closeAll closes what the case has made, the last first, and then the adapters,
// which refuse when something is left. What the case has closed itself is closed
// once more, which must do nothing.
func (r *rig) closeAll() {
	if r.Failed() {
		r.giveUp()
		return
	}
	for i := len(r.undo) - 1; i >= 0; i-- {
		assert.NoError(r, r.undo[i]())
	}
	for _, ia := range r.ias {
		if err := ia.CloseGraceful(); err != nil {
			assert.ErrorIs(r, err, dat.ErrInvalidHandle, "something is left")
			assert.NoError(r, ia.Close())
		}
		ranges, bytes := ia.Domain().Mapped()
		assert.Zero(r, ranges, "mappings are left")
		assert.Zero(r, bytes)
		regions, _ := ia.Domain().Stats()
		assert.Zero(r, regions, "registrations are left")
	}
}

// giveUp closes what a case that failed has made, in any way.
func (r *rig) giveUp() {
	for _, ia := range r.ias {
		_ = ia.Close()
	}
	for i := len(r.undo) - 1; i >= 0; i-- {
		_ = r.undo[i]()
	}
}

// code is a return code to match an error with.
func code(t hw.Type, sub hw.Subtype) error { return &hw.Error{Type: t, Sub: sub} }
