package wire

import "strconv"

// Opcode is an RDMA message's type (RFC 5040 section 4.1, RFC 7306 section 4.1).
type Opcode uint8

// The opcodes. Those from OpImmediate on are RFC 7306's, which a peer need not know; siw
// does not know them.
const (
	OpWrite            Opcode = 0
	OpReadRequest      Opcode = 1
	OpReadResponse     Opcode = 2
	OpSend             Opcode = 3
	OpSendInvalidate   Opcode = 4
	OpSendSE           Opcode = 5 // with solicited event
	OpSendSEInvalidate Opcode = 6
	OpTerminate        Opcode = 7
	OpImmediate        Opcode = 8
	OpImmediateSE      Opcode = 9
	OpAtomicRequest    Opcode = 10
	OpAtomicResponse   Opcode = 11
)

// Queue is the number of a queue of untagged buffers (QN), each of which has
// message numbers of its own.
type Queue uint32

// The queues.
const (
	QueueSend           Queue = 0 // sends and immediate data
	QueueRead           Queue = 1 // Read Requests and Atomic Requests
	QueueTerminate      Queue = 2
	QueueAtomicResponse Queue = 3

	queues = 4
)

// ImmediateSize is the size in octets of the uninterpreted data that an Immediate Data message
// carries, with or without solicited event (RFC 7306 section 6.2).
const ImmediateSize = 8

// opcodeInfo is a row of RFC 5040 figures 4 and 5 and RFC 7306 figures 2 and 3.
type opcodeInfo struct {
	name   string
	tagged bool
	queue  Queue
	// extra is the size of the RDMAP header behind the DDP header, or 0. A message with
	// an RDMAP header carries no payload and is one segment long.
	extra int
	known bool
}

// opcodes has a row for every value of the field's four bits.
var opcodes = [16]opcodeInfo{
	OpWrite:            {name: "RDMA Write", tagged: true, known: true},
	OpReadRequest:      {name: "RDMA Read Request", queue: QueueRead, extra: ReadRequestSize, known: true},
	OpReadResponse:     {name: "RDMA Read Response", tagged: true, known: true},
	OpSend:             {name: "Send", known: true},
	OpSendInvalidate:   {name: "Send with Invalidate", known: true},
	OpSendSE:           {name: "Send with SE", known: true},
	OpSendSEInvalidate: {name: "Send with SE and Invalidate", known: true},
	OpTerminate:        {name: "Terminate", queue: QueueTerminate, extra: TerminateControlSize, known: true},
	OpImmediate:        {name: "Immediate Data", extra: ImmediateSize, known: true},
	OpImmediateSE:      {name: "Immediate Data with SE", extra: ImmediateSize, known: true},
	OpAtomicRequest:    {name: "Atomic Request", queue: QueueRead, extra: AtomicRequestSize, known: true},
	OpAtomicResponse:   {name: "Atomic Response", queue: QueueAtomicResponse, extra: AtomicResponseSize, known: true},
}

func (o Opcode) info() *opcodeInfo { return &opcodes[o&opcodeMask] }

// Known reports whether an RFC defines the opcode.
func (o Opcode) Known() bool { return o <= opcodeMask && o.info().known }

// Tagged reports whether the message goes to a tagged buffer.
func (o Opcode) Tagged() bool { return o.info().tagged }

// Queue is the queue of an untagged message; 0 for a tagged one.
func (o Opcode) Queue() Queue { return o.info().queue }

// Extension reports whether RFC 7306 added the opcode.
func (o Opcode) Extension() bool { return o >= OpImmediate && o.Known() }

// Send reports whether the message is one of the four sends.
func (o Opcode) Send() bool { return o >= OpSend && o <= OpSendSEInvalidate }

// Solicited reports whether the message asks for an event at the receiver.
func (o Opcode) Solicited() bool {
	return o == OpSendSE || o == OpSendSEInvalidate || o == OpImmediateSE
}

// Invalidates reports whether the message names an STag to invalidate.
func (o Opcode) Invalidates() bool { return o == OpSendInvalidate || o == OpSendSEInvalidate }

// String is the RFCs' name of the message.
func (o Opcode) String() string {
	if o.Known() {
		return o.info().name
	}
	return "Opcode(" + strconv.Itoa(int(o)) + ")"
}
