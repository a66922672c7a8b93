package wire

import "encoding/binary"

// EnhancedDataSize is the size of an [EnhancedData] in octets.
const EnhancedDataSize = 4

// Values of IRD and ORD for read depths that an [EnhancedData] can't express.
const (
	// MaxReads is the greatest depth; Append lowers greater values to it.
	MaxReads = 0x3ffe
	// NotNegotiated as IRD or ORD asks the peer to leave its own value alone, and
	// answers such a request.
	NotNegotiated = 0x3fff
)

// The bits of the two words.
const (
	wordHigh  = 0x8000 // A, C
	wordLow   = 0x4000 // B, D
	readsMask = 0x3fff
)

// EnhancedData is the enhanced RDMA connection establishment data that precedes
// the private data of a frame with S (RFC 6581 section 9):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+---------------------------+-+-+---------------------------+
//	|A|B|            IRD            |C|D|            ORD            |
//	+-+-+---------------------------+-+-+---------------------------+
type EnhancedData struct {
	// PeerToPeer is A: the initiator's first FPDU will be a ready-to-receive
	// indication (RTR), of one of the three kinds that the next fields name. Without
	// A other implementations ignore all three, and Append does not send C and D.
	PeerToPeer bool
	SendRTR    bool // B: a zero-length Send; without A, ends of one implementation may use it as a sign
	WriteRTR   bool // C: a zero-length RDMA Write
	ReadRTR    bool // D: a zero-length RDMA Read Request
	// IRD and ORD are the numbers of RDMA reads that the frame's sender can take, and
	// will issue, at a time: up to [MaxReads], or [NotNegotiated].
	IRD, ORD uint16
}

// Append appends the block.
func (e *EnhancedData) Append(dst []byte) []byte {
	ird, ord := reads(e.IRD), reads(e.ORD)
	if e.SendRTR {
		ird |= wordLow
	}
	if e.PeerToPeer {
		ird |= wordHigh
		if e.WriteRTR {
			ord |= wordHigh
		}
		if e.ReadRTR {
			ord |= wordLow
		}
	}
	dst = binary.BigEndian.AppendUint16(dst, ird)
	return binary.BigEndian.AppendUint16(dst, ord)
}

// reads is n as the fourteen bits of IRD or ORD express it.
func reads(n uint16) uint16 {
	if n > NotNegotiated {
		return MaxReads
	}
	return n
}

// Parse takes the block that begins b. The error is [ErrIncomplete].
func (e *EnhancedData) Parse(b []byte) (n int, err error) {
	if len(b) < EnhancedDataSize {
		return 0, ErrIncomplete
	}
	ird, ord := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	p2p := ird&wordHigh != 0
	*e = EnhancedData{
		PeerToPeer: p2p,
		SendRTR:    ird&wordLow != 0,
		WriteRTR:   p2p && ord&wordHigh != 0,
		ReadRTR:    p2p && ord&wordLow != 0,
		IRD:        ird & readsMask,
		ORD:        ord & readsMask,
	}
	return EnhancedDataSize, nil
}
