//go:build !linux

package iwarp

// hangups does nothing: on this system a receiver reads until nothing is left.
type hangups struct{}

func (*hangups) add(*receiver) {}

func (*hangups) remove(*receiver) {}

func (*hangups) close() {}
