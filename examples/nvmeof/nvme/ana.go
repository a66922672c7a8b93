package nvme

import (
	"encoding/binary"
	"fmt"
)

// ANAState is how a controller reaches the namespaces of an ANA group (Asymmetric Namespace
// Access).
type ANAState uint8

// States of an ANA group.
const (
	ANAOptimized      ANAState = 0x1
	ANANonOptimized   ANAState = 0x2
	ANAInaccessible   ANAState = 0x3
	ANAPersistentLoss ANAState = 0x4
	ANAChange         ANAState = 0xf // on the way to another state, for at most Controller.ANATransition seconds
)

// anaStates are the states by name, as Linux has them in the file ana_state of a path.
var anaStates = map[string]ANAState{
	"optimized": ANAOptimized, "non-optimized": ANANonOptimized, "inaccessible": ANAInaccessible,
	"persistent-loss": ANAPersistentLoss, "change": ANAChange,
}

// ParseANAState decodes the name of a state: optimized, non-optimized, inaccessible,
// persistent-loss or change.
func ParseANAState(name string) (ANAState, error) {
	s, known := anaStates[name]
	if !known {
		return 0, fmt.Errorf("nvme: %q is no ANA state", name)
	}
	return s, nil
}

// String is the name of the state.
func (s ANAState) String() string {
	for name, state := range anaStates {
		if state == s {
			return name
		}
	}
	return fmt.Sprintf("ANA state %#x", uint8(s))
}

// Status is that of an I/O command for a namespace whose group is in this state. A host takes
// the command to another controller, so none has DoNotRetry.
func (s ANAState) Status() Status {
	switch s {
	case ANAOptimized, ANANonOptimized:
		return Success
	case ANAInaccessible:
		return ANAInaccessibleStatus
	case ANAPersistentLoss:
		return ANAPersistentLossStatus
	case ANAChange:
		return ANATransitionStatus
	default:
		return InternalPathError
	}
}

// ANAGroup is a descriptor of the ANA log page.
type ANAGroup struct {
	ID         uint32 // from 1
	Changes    uint64 // the change count of the page when the group last changed
	State      ANAState
	Namespaces []uint32 // their ids, in order
}

// Lengths of the header of the ANA log page and of a descriptor, to which 4 bytes are added for
// each namespace.
const (
	ANAHeaderLen = 16
	ANAGroupLen  = 32
)

// AppendANA appends an ANA log page to b. changes counts the changes of the page, and the
// groups are in the order of their ids.
func AppendANA(b []byte, changes uint64, groups []ANAGroup) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, changes)
	b = le.AppendUint16(b, uint16(len(groups)))
	b = append(b, make([]byte, ANAHeaderLen-10)...)
	for _, g := range groups {
		b = le.AppendUint32(b, g.ID)
		b = le.AppendUint32(b, uint32(len(g.Namespaces)))
		b = le.AppendUint64(b, g.Changes)
		b = append(b, byte(g.State))
		b = append(b, make([]byte, ANAGroupLen-17)...)
		for _, nsid := range g.Namespaces {
			b = le.AppendUint32(b, nsid)
		}
	}
	return b
}

// GroupsOnly is the bit of CDW10 by which Get Log Page asks for an ANA log page without the ids
// of namespaces: RGO.
const GroupsOnly uint32 = 1 << 8
