package line

import (
	"fmt"
	"strings"

	"godat/hw"
)

var flagText = []struct {
	flag hw.Flags
	name string
}{
	{hw.Suppress, "SUPPRESS"},
	{hw.SolicitedWait, "SOLICITED_WAIT"},
	{hw.Unsignalled, "UNSIGNALLED"},
	{hw.BarrierFence, "BARRIER_FENCE"},
	{hw.EVDThreshold, "EVD_THRESHOLD"},
}

// badFlags returns why op can't be posted with the flags in bad.
func badFlags(op hw.Op, bad hw.Flags) string {
	legal, attr := operations[op].flags, "ep.Attr.RequestFlags"
	if op == hw.OpRecv {
		attr = "ep.Attr.RecvFlags"
	}
	var why []string
	for _, f := range flagText {
		switch {
		case bad&f.flag == 0:
		case legal&f.flag != 0:
			why = append(why, f.name+" needs "+attr)
		default:
			why = append(why, fmt.Sprintf("%s does not go with %v", f.name, op))
		}
		bad &^= f.flag
	}
	if bad != 0 {
		why = append(why, fmt.Sprintf("there are no completion flags %#x", uint16(bad)))
	}
	return strings.Join(why, ", ")
}
