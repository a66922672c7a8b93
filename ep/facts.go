package ep

import (
	"time"

	"godat/hw"
)

// Inputs that others tell the step, one bit for each kind: a second input of a kind adds nothing
// before the step has read the first. The step orders them.
const (
	tellEstablished uint32 = 1 << iota
	tellFirstData          // data came before the provider reported the connection
	tellRefused
	tellDown
	tellTimeout
	tellRequestEnd // the provider has completed all requests
	tellRecvEnd
	tellControl // a control call is pending
	tellAsked   // a request has come for a reserved endpoint
	tellMark    // somebody asks whether the suppressed requests have succeeded
	tellOverrun // more receives were taken than the hard watermark allows
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
	f.e.box.tell(tellEstablished)
}

// Refused implements [hw.Facts].
func (f *facts) Refused(why hw.Reason, private []byte, cause *hw.Cause) {
	f.refusal = &refusal{why, private}
	f.e.cause.blame(cause)
	f.e.box.tell(tellRefused)
}

// Down implements [hw.Facts].
func (f *facts) Down(why hw.Reason, cause *hw.Cause) {
	f.why = why
	f.e.cause.blame(cause)
	f.e.box.tell(tellDown)
}

// Silent implements [hw.SilenceFacts].
func (f *facts) Silent(d time.Duration) { f.e.record.silence.Store(int64(d)) }
