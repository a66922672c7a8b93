package wire

import "encoding/binary"

// Op is one transfer of a transaction.
type Op struct {
	Server     bool // the server begins it, otherwise the client
	Transfer   Transfer
	Segments   uint32 // number of segments, each of Size bytes
	Size       uint32
	ReapOnRecv bool // SR: the client reaps the send together with its next receive
}

// Bytes is the length of all segments together.
func (o Op) Bytes() int { return int(o.Segments) * int(o.Size) }

func (o *Op) check(r *reader) {
	r.want(o.Transfer <= SendRecv, "transfer %d", o.Transfer)
	r.want(o.Segments >= 1 && o.Segments <= MaxSegments && o.Size >= 1 && uint64(o.Segments)*uint64(o.Size) <= MaxTransfer,
		"%d segments of %d bytes", o.Segments, o.Size)
}

// Transaction is the command for a transaction test.
type Transaction struct {
	Server     string
	Iterations uint32
	Threads    uint32
	EPs        uint32 // of each thread
	RSP        bool   // the server uses reserved service points
	Debug      bool
	Validate   bool // the last three ops are barriers for that
	Poll       bool
	Port       uint64
	Device     string
	QoS        uint32
	Ops        []Op
}

// Append appends the encoding of the message.
func (t *Transaction) Append(b []byte) []byte {
	b = numbers(b, Version, 1)
	b = text(b, t.Server)
	b = numbers(b, t.Iterations, t.Threads, t.EPs, 0, flag(t.RSP), flag(t.Debug), flag(t.Validate), flag(t.Poll))
	b = binary.LittleEndian.AppendUint64(b, t.Port)
	b = text(b, t.Device)
	b = numbers(b, t.QoS, uint32(len(t.Ops)))
	for _, o := range t.Ops {
		b = numbers(b, flag(o.Server), uint32(o.Transfer), o.Segments, o.Size, flag(o.ReapOnRecv))
	}
	var none [20]byte
	for range MaxOps - len(t.Ops) {
		b = append(b, none[:]...)
	}
	return b
}

// ParseTransaction reads a message. Its result is within the bounds.
func ParseTransaction(b []byte) (*Transaction, error) {
	r := reader{b: b}
	r.version()
	r.littleEndian()
	t := &Transaction{Server: r.text(), Iterations: r.u32(), Threads: r.u32(), EPs: r.u32()}
	r.u32() // obsolete
	t.RSP, t.Debug, t.Validate, t.Poll = r.flag(), r.flag(), r.flag(), r.flag()
	t.Port, t.Device, t.QoS = r.u64(), r.text(), r.u32()
	n := r.u32()
	r.want(n <= MaxOps, "%d operations", n)
	for range min(n, MaxOps) {
		o := Op{Server: r.flag(), Transfer: Transfer(r.u32()), Segments: r.u32(), Size: r.u32(), ReapOnRecv: r.flag()}
		o.check(&r)
		t.Ops = append(t.Ops, o)
	}
	r.want(t.Iterations >= 1 && t.Iterations < maxIterations, "%d iterations", t.Iterations)
	r.want(t.Threads >= 1 && t.Threads <= MaxThreads && t.EPs >= 1 && t.EPs <= MaxEPs, "%d threads of %d endpoints", t.Threads, t.EPs)
	r.want(!t.Validate || n >= 3, "validation needs three operations")
	return t, r.err
}

// Performance is the command for a performance test.
type Performance struct {
	Server     string
	Device     string
	QoS        uint32
	Debug      bool
	Poll       bool
	Iterations uint32
	Pipeline   uint32 // outstanding operations, or as many as are possible if that is less
	Op         Op     // a read or a write, which the client makes
	Port       uint64
}

// Append appends the encoding of the message.
func (p *Performance) Append(b []byte) []byte {
	b = numbers(b, Version, 1)
	b = text(text(b, p.Server), p.Device)
	b = numbers(b, p.QoS, flag(p.Debug), flag(p.Poll), p.Iterations, p.Pipeline,
		uint32(p.Op.Transfer), p.Op.Size, p.Op.Segments, 0)
	return binary.LittleEndian.AppendUint64(b, p.Port)
}

// ParsePerformance reads a message.
func ParsePerformance(b []byte) (*Performance, error) {
	r := reader{b: b}
	r.version()
	r.littleEndian()
	p := &Performance{Server: r.text(), Device: r.text(), QoS: r.u32(), Debug: r.flag(), Poll: r.flag(), Iterations: r.u32(), Pipeline: r.u32()}
	p.Op.Transfer, p.Op.Size, p.Op.Segments = Transfer(r.u32()), r.u32(), r.u32()
	r.u32() // reserved service points, which the C program does not use for this test
	p.Port = r.u64()
	p.Op.check(&r)
	r.want(p.Op.Transfer != SendRecv, "a performance test of sends")
	r.want(p.Iterations >= 1 && p.Iterations < maxIterations && p.Pipeline >= 1, "%d iterations, %d at a time", p.Iterations, p.Pipeline)
	return p, r.err
}

// Quit is the command that ends a server.
type Quit struct {
	Server, Device string
	Port           uint64
}

// Append appends the encoding of the message.
func (q *Quit) Append(b []byte) []byte {
	b = numbers(text(text(b, q.Server), q.Device), 0, 0)
	return binary.LittleEndian.AppendUint64(b, q.Port)
}
