package ep

import (
	"time"

	"godat/ep/internal/line"
	"godat/hw"
)

// facts keeps what the provider reports of the connection until the machine reads it. Each field
// is written before its input is told, and read after the input.
type facts struct {
	e               *Endpoint // immutable
	info            *hw.ConnInfo
	refusal         *refusal
	why             hw.Reason
	reservedRequest *CR // the request that came for a reserved endpoint
}

// refusal is what the provider reports of an attempt that failed.
type refusal struct {
	why     hw.Reason
	private []byte
}

// Established implements [hw.Facts].
func (f *facts) Established(info hw.ConnInfo) {
	f.info = &info
	f.e.box.Tell(line.TellEstablished)
}

// Refused implements [hw.Facts].
func (f *facts) Refused(why hw.Reason, private []byte, cause *hw.Cause) {
	f.refusal = &refusal{why, private}
	f.e.cause.blame(cause)
	f.e.box.Tell(line.TellRefused)
}

// Down implements [hw.Facts].
func (f *facts) Down(why hw.Reason, cause *hw.Cause) {
	f.why = why
	f.e.cause.blame(cause)
	f.e.box.Tell(line.TellDown)
}

// Silent implements [hw.SilenceFacts].
func (f *facts) Silent(d time.Duration) { f.e.record.silence.Store(int64(d)) }
