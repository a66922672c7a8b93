package hwtest

import "strings"

// Gap is a documented difference between a device and the contract. A suite
// that is told of a gap still tests the sentence: that the device differs in
// this way and in no other. A gap that is declared and not there fails.
type Gap uint32

// The gaps.
const (
	// EarlyCompletion: a send or write succeeds when the transport has taken it,
	// before the target has looked at it. What goes wrong there is heard as
	// Down(ReasonBroken). This is iWARP's way.
	EarlyCompletion Gap = 1 << iota
	// ImpliedLocalRead: any region may be the source of a send or write. This is
	// verbs' way.
	ImpliedLocalRead
	// ImpliedLocalWrite: a region with RemoteWrite may be written locally too.
	// This is the way of verbs, where the one can't be had without the other.
	ImpliedLocalWrite
)

func (g Gap) String() string {
	if g == 0 {
		return "none"
	}
	var names []string
	for i, n := range [...]string{"EarlyCompletion", "ImpliedLocalRead", "ImpliedLocalWrite"} {
		if g&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return strings.Join(names, "|")
}
