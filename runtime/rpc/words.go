package rpc

import (
	"errors"
	"fmt"
	"time"

	"godat/hw"
)

func attempts(n int) string {
	if n == 1 {
		return "1 failed attempt"
	}
	return fmt.Sprintf("%d failed attempts", n)
}

func untaken(n int, age time.Duration) string {
	if n == 1 {
		return "1 request waits: no handler has taken it for " + lasting(age)
	}
	return fmt.Sprintf("%d requests wait for a handler, the oldest for %s", n, lasting(age))
}

// with is how many wait.
func with(n int, one string) string {
	if n == 1 {
		return "1 " + one + " waits"
	}
	return fmt.Sprintf("%d %ss wait", n, one)
}

// stalled says that messages wait for credits of the peer.
func stalled(n int, one, more, peer string, age time.Duration) string {
	what := "1 " + one + " waits"
	if n != 1 {
		what = fmt.Sprintf("%d %s wait", n, more)
	}
	return fmt.Sprintf("%s for the %s, which has taken no message for %s: its process has stopped, or its program takes no events (the credits that it gave are used up)", what, peer, lasting(age))
}

// lasting is a duration as the page of godat/runtime/inspect writes it.
func lasting(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.3g s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

// reasonOf is why there is no connection, without the calls that the error has gone through: what the
// server has said, or what ended the connection or the attempt.
func reasonOf(err error) string {
	var said *Error
	var rejected *turnedAway
	var cause *hw.Cause
	switch {
	case errors.As(err, &said) && said != nil && said.Text != "":
		return said.Text
	case errors.As(err, &rejected):
		return rejected.means.Error()
	case !errors.As(err, &cause):
	case cause.Text != "":
		return cause.Text
	case cause.Err != nil:
		return cause.Err.Error()
	}
	return err.Error()
}
