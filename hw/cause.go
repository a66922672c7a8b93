package hw

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Layer is the part of the stack whose terms a [Cause] uses.
type Layer uint8

// The layers.
const (
	LayerDAT   Layer = iota // the endpoint and DAT's completion statuses
	LayerTCP                // the socket, name look-up and routing included
	LayerMPA                // iWARP's framing and its start-up
	LayerDDP                // iWARP's direct data placement
	LayerRDMAP              // iWARP's operations
	LayerVerbs              // a verbs device and its connection manager
)

var layerText = [...]string{"DAT", "TCP", "MPA", "DDP", "RDMAP", "verbs"}

func (l Layer) String() string { return text(layerText[:], int(l), "Layer") }

// Side is one of the two ends of a connection, as this end sees them.
type Side uint8

// The sides.
const (
	SideLocal Side = iota // this end
	SidePeer              // the other end
)

func (s Side) String() string { return text([]string{"here", "by the peer"}, int(s), "Side") }

// Cause says why a connection, or the attempt at one, ended. It is an error and
// never changes. A program gets it from an event's error with errors.As. It unwraps
// to Err.
type Cause struct {
	Layer Layer
	// Code is the layer's own number for the error: an errno in LayerTCP, the control
	// field of a Terminate message (layer, type and code, as in 0x1202) in LayerMPA,
	// LayerDDP and LayerRDMAP, the status of a completion or of a connection event in
	// LayerVerbs. 0 means that there is none.
	Code int
	// Text says in the layer's words what happened. If it is empty, Err says it.
	Text string
	// Err is the underlying error, a syscall.Errno or StatusError say; it may be nil.
	Err error
	// Found is the end that found the error, which is not always the end at fault.
	// SidePeer means that the peer's program or provider said so. What this end has
	// from its own system, it found itself: a refused or reset connection, or the end
	// of the stream of a process that died.
	Found Side
	// Local and Remote are the addresses of the two ends. Local is nil if the attempt
	// ended before this end had an address.
	Local, Remote net.Addr
	// Private is the private data with which the peer's program rejected the
	// connection. It is nil if the program gave none, and after any other end. A
	// device may pad it with zeros.
	Private []byte
}

// Error gives the whole cause in one line: "DDP: no buffer available (0x1202), found
// by the peer (10.0.0.1:40000 to 10.0.0.2:4444)". Short private data that is a text is in
// it, too, and last what a program can do, where the layer's words name the symptom alone.
func (c *Cause) Error() string {
	var b strings.Builder
	b.WriteString(c.Layer.String())
	switch {
	case c.Text != "":
		b.WriteString(": " + c.Text)
	case c.Err != nil:
		b.WriteString(": " + c.Err.Error())
	}
	switch {
	case c.Code == 0:
	case c.Layer == LayerMPA || c.Layer == LayerDDP || c.Layer == LayerRDMAP:
		fmt.Fprintf(&b, " (%#04x)", c.Code)
	default:
		fmt.Fprintf(&b, " (%d)", c.Code)
	}
	if printable(c.Private) {
		fmt.Fprintf(&b, ": %q", c.Private)
	}
	b.WriteString(", found " + c.Found.String())
	switch {
	case c.Local != nil && c.Remote != nil:
		fmt.Fprintf(&b, " (%v to %v)", c.Local, c.Remote)
	case c.Remote != nil:
		fmt.Fprintf(&b, " (to %v)", c.Remote)
	}
	if do := c.advice(); do != "" {
		b.WriteString("; " + do)
	}
	return b.String()
}

// printable reports whether private data is a text that an error can show.
func printable(private []byte) bool {
	return len(private) > 0 && len(private) <= 64 && utf8.Valid(private) &&
		!bytes.ContainsFunc(private, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Unwrap returns Err.
func (c *Cause) Unwrap() error { return c.Err }

// Between returns the cause with the addresses that it lacks: a copy, or c itself if
// c lacks none. A nil Cause stays nil.
func (c *Cause) Between(local, remote net.Addr) *Cause {
	if c == nil || c.Local != nil && c.Remote != nil {
		return c
	}
	full := *c
	if full.Local == nil {
		full.Local = local
	}
	if full.Remote == nil {
		full.Remote = remote
	}
	return &full
}
