//go:build !linux

package iwarp

// poller is empty: on this system consumers do nothing for a device.
type poller struct{}

func (*poller) progress() {}

func (*poller) close() {}
