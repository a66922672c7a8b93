package hw

// Op is an operation, in requests and completions. The values up to
// OpInvalidate are DAT_DTOS; those of the InfiniBand extension follow.
type Op uint8

// The operations.
const (
	OpSend           Op = 0  // also the completion of OpSendInvalidate
	OpWrite          Op = 1  // RDMA write
	OpRead           Op = 2  // RDMA read
	OpRecv           Op = 3  // a receive, of a send
	OpRecvInvalidate Op = 4  // a receive whose send invalidated a key
	OpBind           Op = 5  // bind or unbind a memory window
	OpFastRegister   Op = 6  // DAT's LMR_FMR; not offered
	OpInvalidate     Op = 7  // DAT's LMR_INVALIDATE; not offered
	OpWriteImm       Op = 8  // RDMA write with immediate data
	OpRecvImm        Op = 9  // a receive that a write with immediate data consumed
	OpFetchAdd       Op = 10 // InfiniBand extension
	OpCompareSwap    Op = 11 // InfiniBand extension

	// DAT has no numbers for the rest: events never carry them.

	OpSendInvalidate Op = 24 // reported as OpSend
	OpReadToRMR      Op = 25 // reported as OpRead
	OpMark           Op = 30 // see Marker
	OpEnd            Op = 31 // a queue's last completion; see QP.Break
)

var opText = [...]string{
	OpSend: "SEND", OpWrite: "RDMA_WRITE", OpRead: "RDMA_READ", OpRecv: "RECEIVE",
	OpRecvInvalidate: "RECEIVE_WITH_INVALIDATE", OpBind: "BIND_MW", OpFastRegister: "LMR_FMR",
	OpInvalidate: "LMR_INVALIDATE", OpWriteImm: "WRITE_IMMED", OpRecvImm: "RECV_IMMED",
	OpFetchAdd: "FETCH_ADD", OpCompareSwap: "CMP_SWAP",
	OpSendInvalidate: "SEND_WITH_INVALIDATE", OpReadToRMR: "RDMA_READ_TO_RMR", OpMark: "MARK", OpEnd: "END",
}

func (o Op) String() string { return text(opText[:], int(o), "Op") }

// OpSet is a set of operations.
type OpSet uint32

// Ops makes a set.
func Ops(ops ...Op) (s OpSet) {
	for _, o := range ops {
		s |= 1 << o
	}
	return s
}

// Has reports whether the set holds o.
func (s OpSet) Has(o Op) bool { return s>>o&1 != 0 }

// SGE is a local segment as a provider takes it. The layout is ibv_sge's.
// With Len 0 the other fields mean nothing.
type SGE struct {
	Addr uint64 // virtual address within a registered region
	Len  uint32 // bytes
	LKey uint32 // MR.LKey
}

// WRFlags modify a send work request.
type WRFlags uint8

// The request flags.
const (
	WRSignaled  WRFlags = 1 << iota // report success too
	WRSolicited                     // mark the peer's receive completion as solicited
	WRFence                         // begin after all earlier reads, atomics and binds
	WRMore                          // of PostRun only: the run goes on with the next call
)

// SendWR is a request for the send queue.
type SendWR struct {
	ID    uint64 // echoed in the completion
	Op    Op
	Flags WRFlags
	// Imm is the immediate data of OpWriteImm, or the key that OpSendInvalidate
	// invalidates. Immediate data is a number here; the provider puts it in network
	// order.
	Imm uint32
	// SGL is the local memory: source of sends and writes, sink of reads and
	// atomics. An empty SGL is legal and moves nothing. OpReadToRMR has one segment,
	// whose key is a remote key with RemoteWrite: a window's, or a region's RKey.
	SGL []SGE
	// RKey and RemoteAddr name the peer's memory, for RDMA and atomics.
	RKey       uint32
	RemoteAddr uint64
	// Operand is the addend of OpFetchAdd and the new value of OpCompareSwap,
	// which stores it if the target equals Compare.
	Operand, Compare uint64
	// Bind is what OpBind binds; see [Binder]. PostSend copies it.
	Bind *Bind
}

// RecvWR is a request for a receive queue.
type RecvWR struct {
	ID  uint64
	SGL []SGE // where the message goes; it may be shorter, never longer
}

// WCFlags qualify a completion.
type WCFlags uint8

// The completion flags.
const (
	WCSolicited   WCFlags = 1 << iota // the peer's send asked for a notification
	WCImm                             // Imm is immediate data
	WCInvalidated                     // Imm is the key that the send invalidated
	WCMore                            // of CompleteOne only: the sink may keep this one until the series ends; see SeriesSink
)

// WC is a work completion. Unless Status is StatusSuccess only ID, Status, QP and
// CQ mean anything.
type WC struct {
	ID     uint64
	Len    uint32 // bytes moved: a receive's message, else the sum of the local segments
	Imm    uint32
	QP     uint32 // QPConfig.Number, where the receive came from an SRQ
	Status Status
	Op     Op
	Flags  WCFlags
	_      uint8
	// CQ is the tag of the queue the completion was polled from.
	CQ uint32
}
