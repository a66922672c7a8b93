package ep

// A work request's id holds all that its completion needs, since a failed one may carry nothing
// else:
//
//	kind:4 | generation:12 | object:24 | slot:24
//
// Object and generation are the halves of the endpoint's key in its adapter's table (8 bits of
// the generation are used), so that a late completion finds no other endpoint.
const (
	slotBits  = 24
	objectPos = slotBits
	genPos    = objectPos + 24
	kindPos   = 60

	slotMask = 1<<slotBits - 1
	maxDepth = 1 << 20 // work requests of one direction
	maxIOV   = 255     // segments of one work request
)

type idKind uint8

const (
	kindRequest idKind = iota + 1
	kindRecv
	kindRequestEnd
	kindRecvEnd
	kindMark
	kindShared // of a shared receive queue: the completion's QP is the endpoint's key
)

// idBase returns the id of slot 0.
func idBase(kind idKind, key uint32) uint64 {
	return uint64(kind)<<kindPos | uint64(key&0xff)<<genPos | uint64(key>>8)<<objectPos
}

// idKey returns the key of the endpoint that an id belongs to.
func idKey(id uint64) uint32 {
	return uint32(id>>objectPos)<<8 | uint32(id>>genPos)&0xff
}

func kindOf(id uint64) idKind { return idKind(id >> kindPos) }
