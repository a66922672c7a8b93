package wire_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw/iwarp/wire"
)

// Frames typed from RFC 5044 figure 8, RFC 6581 sections 6 and 9, and from what
// siw was seen to send.
const (
	reqKey = "4d504120 49442052 65712046 72616d65 "
	repKey = "4d504120 49442052 65702046 72616d65 "
)

var requestRows = []struct {
	name  string
	bytes string
	want  wire.MPARequest
}{
	{
		"rping over siw", reqKey + "10 02 0004 0001 0001",
		wire.MPARequest{Revision: 2, Enhanced: true, Data: wire.EnhancedData{IRD: 1, ORD: 1}, Private: []byte{}},
	},
	{
		"revision 1, nothing", reqKey + "00 01 0000",
		wire.MPARequest{Revision: 1, Private: []byte{}},
	},
	{
		"revision 1, markers, CRC and private data", reqKey + "c0 01 0003 010203",
		wire.MPARequest{Revision: 1, Markers: true, CRC: true, Private: []byte{1, 2, 3}},
	},
	{
		"revision 2 without the enhanced block", reqKey + "40 02 0001 aa",
		wire.MPARequest{Revision: 2, CRC: true, Private: []byte{0xaa}},
	},
	{
		"peer to peer by write or read", reqKey + "50 02 0006 8004 c010 beef",
		wire.MPARequest{
			Revision: 2, CRC: true, Enhanced: true,
			Data:    wire.EnhancedData{PeerToPeer: true, WriteRTR: true, ReadRTR: true, IRD: 4, ORD: 16},
			Private: []byte{0xbe, 0xef},
		},
	},
	{
		"peer to peer by send, depths not negotiated", reqKey + "10 02 0004 ffff 3fff",
		wire.MPARequest{
			Revision: 2, Enhanced: true,
			Data:    wire.EnhancedData{PeerToPeer: true, SendRTR: true, IRD: wire.NotNegotiated, ORD: wire.NotNegotiated},
			Private: []byte{},
		},
	},
	{
		"B without A", reqKey + "18 02 0004 4002 0003",
		wire.MPARequest{
			Revision: 2, BigFPDU: true, Enhanced: true,
			Data: wire.EnhancedData{SendRTR: true, IRD: 2, ORD: 3}, Private: []byte{},
		},
	},
	{
		"big FPDUs welcome", reqKey + "18 02 0004 0000 0000",
		wire.MPARequest{Revision: 2, BigFPDU: true, Enhanced: true, Private: []byte{}},
	},
}

var replyRows = []struct {
	name  string
	bytes string
	want  wire.MPAReply
}{
	{
		"rping over siw", repKey + "10 02 0004 0001 0001",
		wire.MPAReply{Revision: 2, Enhanced: true, Data: wire.EnhancedData{IRD: 1, ORD: 1}, Private: []byte{}},
	},
	{
		"siw picks the write RTR", repKey + "10 02 0004 8001 8001",
		wire.MPAReply{
			Revision: 2, Enhanced: true,
			Data:    wire.EnhancedData{PeerToPeer: true, WriteRTR: true, IRD: 1, ORD: 1},
			Private: []byte{},
		},
	},
	{
		"siw rejects markers", repKey + "30 02 0004 0000 0000",
		wire.MPAReply{Revision: 2, Reject: true, Enhanced: true, Private: []byte{}},
	},
	{
		"revision 1, rejected with private data", repKey + "20 01 0004 6e6f7065",
		wire.MPAReply{Revision: 1, Reject: true, Private: []byte("nope")},
	},
	{
		"all flags", repKey + "f8 02 0004 bfff 7fff",
		wire.MPAReply{
			Revision: 2, Markers: true, CRC: true, Reject: true, BigFPDU: true, Enhanced: true,
			Data:    wire.EnhancedData{PeerToPeer: true, ReadRTR: true, IRD: wire.NotNegotiated, ORD: wire.NotNegotiated},
			Private: []byte{},
		},
	},
}

func TestMPARequestsAreReadAndMade(t *testing.T) {
	for _, row := range requestRows {
		t.Run(row.name, func(t *testing.T) {
			b := unhex(t, row.bytes)
			got, n, err := wire.ParseMPARequest(append(b[:len(b):len(b)], 0xff)) // what follows is not the frame's
			require.NoError(t, err)
			assert.Equal(t, len(b), n)
			assert.Equal(t, row.want, got)
			assert.Equal(t, b, got.Append(nil))
			assert.Equal(t, append([]byte("x"), b...), got.Append([]byte("x")))
		})
	}
}

func TestMPARepliesAreReadAndMade(t *testing.T) {
	for _, row := range replyRows {
		t.Run(row.name, func(t *testing.T) {
			b := unhex(t, row.bytes)
			got, n, err := wire.ParseMPAReply(append(b[:len(b):len(b)], 0xff))
			require.NoError(t, err)
			assert.Equal(t, len(b), n)
			assert.Equal(t, row.want, got)
			assert.Equal(t, b, got.Append(nil))
		})
	}
}

func TestAnMPAFrameIsIncompleteUpToItsLastOctet(t *testing.T) {
	whole := unhex(t, reqKey+"50 02 0006 8004 c010 beef")
	for k := range whole {
		_, n, err := wire.ParseMPARequest(whole[:k])
		require.ErrorIs(t, err, wire.ErrIncomplete, "%d octets", k)
		assert.Zero(t, n)
		want := wire.MPAHeaderSize
		if k >= wire.MPAHeaderSize {
			want = len(whole)
		}
		assert.Equal(t, want, wire.MPAFrameSize(whole[:k]))
	}
}

func TestABadMPAFrameIsRefused(t *testing.T) {
	for _, row := range []struct {
		name  string
		bytes string
		want  *wire.Error
	}{
		{"another protocol", "47455420 2f204854", wire.ErrMPAKey},
		{"another protocol, first octet", "16", wire.ErrMPAKey},
		{"a wrong last octet of the key", "4d504120 49442052 65712046 72616d45", wire.ErrMPAKey},
		{"the key in lower case", "6d706120", wire.ErrMPAKey},
		{"a reply", repKey + "10 02 0004 0001 0001", wire.ErrMPARole},
		{"a reply as soon as it shows", "4d504120 49442052 6570", wire.ErrMPARole},
		{"RDMAC's revision", reqKey + "00 00 0000", wire.ErrMPARevision},
		{"a revision to come", reqKey + "10 03 0004 0001 0001", wire.ErrMPARevision},
		{"513 octets of private data, before they come", reqKey + "00 01 0201", wire.ErrMPAPrivateLong},
		{"65535 octets of private data", reqKey + "10 02 ffff", wire.ErrMPAPrivateLong},
		{"an enhanced block cut short", reqKey + "10 02 0003 000100", wire.ErrMPAPrivateShort},
		{"no enhanced block, before it comes", reqKey + "10 02 0000", wire.ErrMPAPrivateShort},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := unhex(t, row.bytes)
			_, n, err := wire.ParseMPARequest(b)
			require.ErrorIs(t, err, row.want)
			assert.Zero(t, n)
			assert.Equal(t, wire.TermMPARequest, row.want.Term)

			// The same in the other direction.
			if len(b) > 9 && b[9] == 'q' {
				b[9] = 'p'
			} else if len(b) > 9 && b[9] == 'p' {
				b[9] = 'q'
			}
			_, _, err = wire.ParseMPAReply(b)
			require.ErrorIs(t, err, row.want)
		})
	}
}

func TestAReplyCutShortForTheKernelIsRefusedHereToo(t *testing.T) {
	// siw's answer to revision 1 with S, which is then a reserved bit.
	r, n, err := wire.ParseMPAReply(unhex(t, repKey+"10 01 0000"))
	require.NoError(t, err)
	assert.Equal(t, wire.MPAHeaderSize, n)
	assert.False(t, r.Enhanced)
	// The form that makes siw read before its buffer.
	_, _, err = wire.ParseMPAReply(unhex(t, repKey+"10 02 0002 0001"))
	require.ErrorIs(t, err, wire.ErrMPAPrivateShort)
}

func TestReservedBitsAndTheRequestsRejectBitAreNotLookedAt(t *testing.T) {
	r, _, err := wire.ParseMPARequest(unhex(t, reqKey+"27 01 0000"))
	require.NoError(t, err)
	assert.Equal(t, wire.MPARequest{Revision: 1, Private: []byte{}}, r)
	assert.Equal(t, unhex(t, reqKey+"00 01 0000"), r.Append(nil), "and sent as zero")

	r, _, err = wire.ParseMPARequest(unhex(t, reqKey+"10 02 0004 4001 c002"))
	require.NoError(t, err)
	assert.Equal(t, wire.EnhancedData{SendRTR: true, IRD: 1, ORD: 2}, r.Data, "C and D mean nothing without A")
	assert.Equal(t, unhex(t, reqKey+"10 02 0004 4001 0002"), r.Append(nil))
}

func TestTheEnhancedBlockGoesWithRevision2Only(t *testing.T) {
	r := wire.MPARequest{Revision: 1, Enhanced: true, Data: wire.EnhancedData{IRD: 1}, Private: []byte{7}}
	assert.Equal(t, unhex(t, reqKey+"00 01 0001 07"), r.Append(nil))
}

func TestReadDepthsThatDoNotFitAreLowered(t *testing.T) {
	assert.Equal(t, 1<<14-1, wire.NotNegotiated, "all ones")
	assert.Equal(t, 1<<14-2, wire.MaxReads)
	for _, row := range []struct{ in, want uint16 }{
		{0, 0},
		{wire.MaxReads, wire.MaxReads},
		{wire.NotNegotiated, wire.NotNegotiated},
		{0x4000, wire.MaxReads},
		{0xffff, wire.MaxReads},
	} {
		e := wire.EnhancedData{IRD: row.in, ORD: row.in}
		var got wire.EnhancedData
		n, err := got.Parse(e.Append(nil))
		require.NoError(t, err)
		assert.Equal(t, wire.EnhancedDataSize, n)
		assert.Equal(t, wire.EnhancedData{IRD: row.want, ORD: row.want}, got)
	}
	var e wire.EnhancedData
	_, err := e.Parse(make([]byte, 3))
	require.ErrorIs(t, err, wire.ErrIncomplete)
}

func TestPrivateDataFitsUpToItsLimits(t *testing.T) {
	full := wire.MPARequest{Revision: 2, Enhanced: true, Private: bytes.Repeat([]byte{9}, wire.MaxPrivateEnhanced)}
	b := full.Append(nil)
	assert.Len(t, b, wire.MaxMPASize)
	got, n, err := wire.ParseMPARequest(b)
	require.NoError(t, err)
	assert.Equal(t, wire.MaxMPASize, n)
	assert.Equal(t, full, got)

	full.Private = append(full.Private, 9)
	assert.Panics(t, func() { full.Append(nil) })
	plain := wire.MPAReply{Revision: 1, Private: make([]byte, wire.MaxPrivate)}
	assert.Len(t, plain.Append(nil), wire.MaxMPASize)
	plain.Private = append(plain.Private, 9)
	assert.Panics(t, func() { plain.Append(nil) })
}

func TestParsedPrivateDataCannotGrowIntoWhatFollows(t *testing.T) {
	b := append(unhex(t, reqKey+"00 01 0001 07"), 1, 2, 3)
	r, _, err := wire.ParseMPARequest(b)
	require.NoError(t, err)
	_ = append(r.Private, 0xff)
	assert.Equal(t, byte(1), b[len(b)-3])
}
