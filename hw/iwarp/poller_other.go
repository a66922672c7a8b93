//go:build !linux

package iwarp

// poller does nothing: on this system only the receivers read.
type poller struct{}

func (*poller) progress() {}

func (*poller) join() {}

func (*poller) add(*receiver) {}

func (*poller) remove(*receiver) {}

func (*poller) close() {}
