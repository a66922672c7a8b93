package ep

import (
	"time"

	"godat/ep/internal/line"
	"godat/hw"
)

// reports is an endpoint as what its device reports to.
type reports Endpoint

// Established implements [hw.Facts].
func (r *reports) Established(info hw.ConnInfo) {
	r.facts.info = &info
	r.box.Tell(line.TellEstablished)
}

// Refused implements [hw.Facts].
func (r *reports) Refused(why hw.Reason, private []byte, cause *hw.Cause) {
	r.facts.refusal = &refusal{why, private}
	r.cause.blame(cause)
	r.box.Tell(line.TellRefused)
}

// Down implements [hw.Facts].
func (r *reports) Down(why hw.Reason, cause *hw.Cause) {
	r.facts.why = why
	r.cause.blame(cause)
	r.box.Tell(line.TellDown)
}

// Silent implements [hw.SilenceFacts].
func (r *reports) Silent(d time.Duration) { r.record.silence.Store(int64(d)) }
