package life

import "time"

// wordTime is by how much a connect's alarm comes behind the connect's time. The provider has that
// time too, and can say what the attempt had come to; the alarm is for a provider that does not.
const wordTime = 100 * time.Millisecond

// leastLate is from which lateness on an alarm says nothing of those it waits for.
const leastLate = 500 * time.Millisecond

// attemptTime is when the alarm of an attempt rings; 0: never.
func attemptTime(limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return limit + wordTime
}

// TooLate reports whether an alarm says nothing, which rings that much after its time, and begins anew: this process
// was paused, or has more to do than it can, and what the alarm waits for may have come meanwhile, or could not.
func TooLate(late, limit time.Duration) bool { return late > max(limit/4, leastLate) }
