package runtime

import (
	"net"

	"godat/hw"
)

func closedIA(op string) error {
	return hw.Errorf(op, hw.InvalidHandle, hw.HandleIA, "the interface adapter is nil or closed (dat.Open opens one): %w", net.ErrClosed)
}

func nilContext(op string) error {
	return hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "a nil context; context.Background() is one that never ends")
}

func closedListener(op string) error {
	return hw.Errorf(op, hw.InvalidHandle, hw.HandlePSP, "the listener is nil, stopped or closed; a new Listen makes another: %w", net.ErrClosed)
}

func closedConn(op string) error {
	return hw.Errorf(op, hw.InvalidHandle, hw.HandleEP, "the connection is nil or closed; a new Dial or Accept makes another: %w", net.ErrClosed)
}
