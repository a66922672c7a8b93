package transaction

import (
	"fmt"
	"io"
	"time"

	"godat/examples/dattest/wire"
)

// Stats are the counts of a side.
type Stats struct {
	Threads, EPs int
	Ops          uint64
	Time         time.Duration // of the slowest thread
	// Bytes that this side sent and received, and bytes that RDMA of either side read
	// and wrote.
	Send, Recv, Read, Write uint64
}

func (s *Stats) add(t *Stats) {
	s.Ops += t.Ops
	s.Time = max(s.Time, t.Time)
	s.Send += t.Send
	s.Recv += t.Recv
	s.Read += t.Read
	s.Write += t.Write
}

func (s *Stats) count(o wire.Op, ours bool, eps int) {
	bytes := uint64(o.Bytes()) * uint64(eps)
	switch {
	case o.Transfer == wire.RDMARead:
		s.Read += bytes
	case o.Transfer == wire.RDMAWrite:
		s.Write += bytes
	case ours:
		s.Send += bytes
	default:
		s.Recv += bytes
	}
}

// Print prints what dapltest prints, in the same places.
func (s Stats) Print(w io.Writer) {
	seconds := max(s.Time.Seconds(), 1e-9)
	fmt.Fprintf(w, "----- Stats ---- : %d threads, %d EPs\n", s.Threads, s.EPs)
	fmt.Fprintf(w, "Total WQE        : %10.2f WQE/Sec\n", float64(s.Ops)/seconds)
	fmt.Fprintf(w, "Total Time       : %10.2f sec\n", seconds)
	for _, v := range []struct {
		name  string
		bytes uint64
	}{{"Send", s.Send}, {"Recv", s.Recv}, {"RDMA Read", s.Read}, {"RDMA Write", s.Write}} {
		mb := float64(v.bytes) / 1e6
		fmt.Fprintf(w, "%-16s : %10.2f MB - %10.2f MB/Sec\n", "Total "+v.name, mb, mb/seconds)
	}
}
