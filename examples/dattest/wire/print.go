package wire

import (
	"fmt"
	"io"
)

// Print prints the command, as dapltest does with -d.
func (t *Transaction) Print(w io.Writer) {
	fmt.Fprintln(w, "-------------------------------------")
	line(w, "TransCmd", "server_name", t.Server)
	line(w, "TransCmd", "num_iterations", t.Iterations)
	line(w, "TransCmd", "num_threads", t.Threads)
	line(w, "TransCmd", "eps_per_thread", t.EPs)
	line(w, "TransCmd", "validate", flag(t.Validate))
	line(w, "TransCmd", "dapl_name", t.Device)
	line(w, "TransCmd", "num_ops", len(t.Ops))
	for i, o := range t.Ops {
		side := "client"
		if o.Server {
			side = "server"
		}
		name := fmt.Sprintf("TransCmd.op[%d]", i)
		line(w, name, "transfer_type", fmt.Sprintf("%v (%s)", o.Transfer, side))
		line(w, name, "seg_size", o.Size)
		line(w, name, "num_segs", o.Segments)
		line(w, name, "reap_send_on_recv", flag(o.ReapOnRecv))
	}
}

// Print prints the command, as dapltest does with -d.
func (p *Performance) Print(w io.Writer) {
	fmt.Fprintln(w, "-------------------------------------")
	line(w, "PerfCmd", "server_name", p.Server)
	line(w, "PerfCmd", "num_iterations", p.Iterations)
	line(w, "PerfCmd", "pipeline_len", p.Pipeline)
	line(w, "PerfCmd", "dapl_name", p.Device)
	line(w, "PerfCmd", "transfer_type", p.Op.Transfer)
	line(w, "PerfCmd", "seg_size", p.Op.Size)
	line(w, "PerfCmd", "num_segs", p.Op.Segments)
}

func line(w io.Writer, of, name string, v any) {
	fmt.Fprintf(w, "%-33s : %v\n", of+"."+name, v)
}
