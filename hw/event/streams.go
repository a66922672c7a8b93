package event

import "strings"

// Streams is DAT_EVD_FLAGS, with DAT's values: the kinds of events a dispatcher
// takes.
type Streams uint32

// The streams.
const (
	StreamSoftware   Streams = 0x001
	StreamCR         Streams = 0x010
	StreamDTO        Streams = 0x020
	StreamConnection Streams = 0x040
	StreamBind       Streams = 0x080
	StreamAsync      Streams = 0x100

	// DefaultStreams is everything but software events.
	DefaultStreams Streams = 0x1f0
)

var streamText = []struct {
	s    Streams
	name string
}{
	{StreamSoftware, "SOFTWARE"},
	{StreamCR, "CR"},
	{StreamDTO, "DTO"},
	{StreamConnection, "CONNECTION"},
	{StreamBind, "RMR_BIND"},
	{StreamAsync, "ASYNC"},
}

func (s Streams) String() string {
	var names []string
	for _, t := range streamText {
		if s&t.s != 0 {
			names = append(names, t.name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, "|")
}
