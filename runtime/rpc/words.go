package rpc

import (
	"errors"
	"fmt"
	"time"

	"godat/hw"
)

// counted is a number of things as the page of godat/runtime/inspect writes it.
func counted[N int | uint64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + one + "s"
}

// with is counted, of things that do something.
func with[N int | uint64](n N, one, does, do string) string {
	if n == 1 {
		do = does
	}
	return counted(n, one) + " " + do
}

// number has a narrow space between thousands.
func number[N int | uint64](n N) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
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
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.3g s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

// rate is how many came a second.
func rate(n uint64, over time.Duration) string {
	if each := float64(n) / over.Seconds(); each < 100 {
		return fmt.Sprintf("%.2g a second", each)
	}
	return number(int(float64(n)/over.Seconds())) + " a second"
}

// speaks says what a client speaks that has no version in common with a server.
func speaks(err error) string {
	var u *unfit
	if errors.As(err, &u) {
		return fmt.Sprintf("%s of the protocol, and this server %s: %s; give both ends one release", versions(u.from, u.to), versions(oldest, newest), u.newer("the client", "this server"))
	}
	return "not the protocol of package rpc: another program dials this address"
}

// reasonOf is why there is no connection, without the calls that the error has gone through: what the
// server has said, or what ended the connection or the attempt.
func reasonOf(err error) string {
	var said *Error
	var rejected *turnedAway
	var cause *hw.Cause
	var other *unfit
	switch {
	case errors.As(err, &other):
		return fmt.Sprintf("%s%s of the protocol, and this client %s: %s; give both ends one release", serverSpeaks, versions(other.from, other.to), versions(oldest, newest), other.newer("the server", "this client"))
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

// serverSpeaks begins the reason for which there is no connection where the versions do not fit.
const serverSpeaks = "the server speaks "
