package event

import "strings"

// Streams is DAT_EVD_FLAGS, with DAT's values: the kinds of events a dispatcher
// takes.
type Streams uint32

// The streams.
const (
	StreamSoftware   Streams = 0x001 // what the program posts
	StreamCR         Streams = 0x010 // connection requests
	StreamDTO        Streams = 0x020 // completions, those of the InfiniBand extension too
	StreamConnection Streams = 0x040 // beginnings and ends of connections
	StreamBind       Streams = 0x080 // completions of binds
	StreamAsync      Streams = 0x100 // asynchronous errors

	// DefaultStreams is everything but software events.
	DefaultStreams Streams = 0x1f0 // all but software events
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
