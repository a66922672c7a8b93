package hwtest

import "strings"

// Gap is a set of documented differences between a device and the contract. With a
// declared gap the suite still tests the sentence of the contract: the device must
// differ in this way and in no other. The suite fails when a declared gap is absent.
type Gap uint32

// The gaps.
const (
	// EarlyCompletion: a send or write succeeds when the transport has taken it,
	// before the target has looked at it. This side learns of a refusal by the target
	// as Down(ReasonBroken). iWARP works this way.
	EarlyCompletion Gap = 1 << iota
	// ImpliedLocalRead: any region may be the source of a send or write. Verbs work
	// this way.
	ImpliedLocalRead
	// ImpliedLocalWrite: a region with RemoteWrite may be written locally too. Verbs
	// work this way: they refuse remote write access without local write access.
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
