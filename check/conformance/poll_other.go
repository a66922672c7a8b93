//go:build !linux

package conformance

import "time"

// pollLoop is for systems whose CNOs have descriptors; this one has none.
type pollLoop struct{}

func newPollLoop(r *rig, _ uintptr) *pollLoop {
	r.Fatal("no descriptors here")
	return nil
}

func (*pollLoop) readable(*rig, time.Duration) bool { return false }
