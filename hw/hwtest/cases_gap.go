package hwtest

import "godat/hw"

// gapCases probe the differences from the contract: each declared gap must be present,
// and each gap that is present must be declared.
var gapCases = []contractCase{
	{"EarlyCompletion is as declared", func(r *rig) {
		a, b := r.pair()
		out := a.post(sendOf()) // with no receive posted
		early := a.sent(out).Status == hw.StatusSuccess
		r.also.Equal(r.cfg.Gaps&EarlyCompletion != 0, early, "a send which the target refuses succeeds")
		r.broken(a, b)
	}},
	{"ImpliedLocalRead is as declared", func(r *rig) {
		g := r.a.mem(8, hw.LocalWrite)
		implied := r.local(hw.OpSend, g.all()) == hw.StatusSuccess
		r.also.Equal(r.cfg.Gaps&ImpliedLocalRead != 0, implied, "a region without LocalRead is sent from")
	}},
	{"ImpliedLocalWrite is as declared", func(r *rig) {
		g := r.b.mem(8, hw.RemoteWrite)
		implied := r.local(hw.OpRecv, g.all()) == hw.StatusSuccess
		r.also.Equal(r.cfg.Gaps&ImpliedLocalWrite != 0, implied, "a region with RemoteWrite only is received into")
	}},
}
