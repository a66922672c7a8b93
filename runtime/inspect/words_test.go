package inspect

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	dat "godat/runtime"
)

func TestALineOfARowBeginsWithWhatItIs(t *testing.T) {
	for head, row := range map[string][2]string{
		"rpc client to loop:1":         {"rpc clients", "loop:1"},
		"rpc server on loop:1":         {"rpc servers", "loop:1"},
		"rpc connection from loop:2":   {"rpc connections", "loop:2"},
		"disk b":                       {"disks", "b"},
		"disk 1":                       {"disks", "disk 1"},
		"odd":                          {"odd", "odd"},
		"controller 1, queue 2":        {"controllers", "controller 1, queue 2"},
		"queue controller 1 (loop:49)": {"queues", "controller 1 (loop:49)"},
	} {
		assert.Equal(t, head, headOf(row[0], row[1]))
	}
}

func TestEndsNameTheEndThatPostedNoReceive(t *testing.T) {
	for text, cause := range map[string]ep.CauseSnapshot{
		"no receive was posted at the peer b for a message from a here: look at the peer's page, whether it takes no events, keeps its buffers, or posts too few (ERR_RECEIVER_NOT_READY)": {Layer: "DAT", Code: int(hw.StatusReceiverNotReady), Text: "DAT: SEND ended, found here (a to b)"},
		"no receive was posted here, at a, for a message from the peer b: this program takes no events, keeps its buffers, or posts too few (ERR_RECEIVER_NOT_READY)": {
			Layer: "DAT", Code: int(hw.StatusReceiverNotReady), Text: "DAT: the peer's SEND ended, found by the peer (a to b)",
		},
		"no receive was posted at the peer b for a message from a here: look at the peer's page, whether it takes no events, keeps its buffers, or posts too few (DDP 0x1202)": {Layer: "DDP", Code: 0x1202, Text: "DDP: no buffer available, found by the peer (a to b)"},
		"no receive was posted here, at a, for a message from the peer b: this program takes no events, keeps its buffers, or posts too few (DDP 0x1202)":                      {Layer: "DDP", Code: 0x1202, Text: "DDP: no buffer available, found here (a to b)"},
		"TCP: reset":                       {Layer: "TCP", Code: 104, Text: "TCP: reset, found here (a to b)"},
		"MPA: no, as the peer says; do it": {Layer: "MPA", Text: "MPA: no, found by the peer (to b); do it"},
	} {
		e := &ep.EndSnapshot{Local: "a", Remote: "b", Cause: &cause}
		assert.Equal(t, ": "+text, causeOf(e))
	}
	assert.Empty(t, causeOf(&ep.EndSnapshot{}))
}

func TestFailedAttemptsToAnAddressAreOneLine(t *testing.T) {
	now := &seen{Snapshot: dat.Snapshot{At: time.Now()}}
	end := func(remote string, event event.Number, age time.Duration) {
		now.LastEnds = append(now.LastEnds, ep.EndSnapshot{Name: remote, Remote: remote, Event: event.String(), At: now.At.Add(-age)})
		now.Ends = append(now.Ends, ep.EndCount{Count: 1})
	}
	texts := func() (texts []string) {
		for _, t := range troubles(now, nil) {
			texts = append(texts, t.Text)
		}
		return texts
	}
	end("a", event.NonPeerRejected, 2*fresh)
	end("a", event.NonPeerRejected, 9*time.Second)
	end("b", event.Unreachable, 8*time.Second)
	end("a", event.NonPeerRejected, 7*time.Second)
	require.Equal(t, []string{
		"2 attempts to connect to a failed within a minute, the last 7 s ago with NON_PEER_REJECTED",
		"an attempt to connect failed 8 s ago with UNREACHABLE",
	}, texts())
	now.LastEnds = now.LastEnds[1:] // the adapter has forgotten one
	assert.Contains(t, texts(), "at least 2 attempts to connect to a failed within a minute, the last 7 s ago with NON_PEER_REJECTED")
	now.LastEnds = append([]ep.EndSnapshot{{Event: event.Disconnected.String(), At: now.At.Add(-time.Hour)}}, now.LastEnds...)
	assert.Contains(t, texts(), "at least 2 attempts to connect to a failed within a minute, the last 7 s ago with NON_PEER_REJECTED", "an orderly end is no attempt")
}
