//go:build !linux

package sock

// idle does nothing: on this system only the receivers read, until nothing is left.
type idle struct{}

func (idle) Progress() {}

func (idle) Counts() (found, empty uint64) { return 0, 0 }

func (idle) Add(Socket) (added bool) { return false }

func (idle) Remove(Socket) {}

func (idle) Close() {}

func (idle) join() {}

var network idle

type (
	// Poller does nothing.
	Poller struct{ idle }
	// HangUps does nothing.
	HangUps struct{ idle }
)
