//go:build !linux

package iwarp

import "runtime"

// poller does nothing: on this system only the receivers read.
type poller struct{ dev *device }

func (*poller) progress() {}

func (*poller) pause() { runtime.Gosched() }

func (*poller) add(*receiver) {}

func (*poller) remove(*receiver) {}

func (*poller) close() {}
