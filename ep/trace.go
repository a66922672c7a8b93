package ep

import (
	"io"

	"godat/ep/internal/life"
	"godat/hw"
)

// Trace records what the endpoint's connection carries from now on, both ways and payloads
// included, as packets in the pcapng format, which Wireshark reads. It ends when stop is called,
// when the connection ends, or at the first error of w; then it closes w. stop returns that error,
// or nil. An error of w harms nothing but the trace. The connection is as slow as w meanwhile.
//
// iwarp records each direction from the next FPDU on, without markers. The packets of the
// connection's start are made up, and say so. A device that can't trace is MODEL_NOT_SUPPORTED, which matches
// errors.ErrUnsupported. An endpoint that is not connected, or has a trace, is INVALID_STATE.
// After an error w is not closed, and may have been written to. DAT has no such call;
// [godat/runtime.WithTrace] traces all connections from their start on.
func (e *Endpoint) Trace(w io.WriteCloser) (stop func() error, err error) {
	const op = "ep.Trace"
	if err := alive(op, e); err != nil {
		return nil, err
	}
	if w == nil {
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "no file for the trace")
	}
	e.ctl.Lock() // no Connect, Reset or Close of the queue pair meanwhile
	defer e.ctl.Unlock()
	if s := e.at(); s != life.Connected {
		return nil, s.Refusal(op)
	}
	t, ok := e.box.QP().(hw.Tracer)
	if !ok {
		return nil, hw.Errorf(op, hw.ModelNotSupported, hw.NoSubtype, "%s can't trace a connection", e.adapter.attr.Provider)
	}
	stop, err = t.Trace(w)
	return stop, wrap(op, err)
}
