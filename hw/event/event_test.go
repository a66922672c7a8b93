package event

import (
	"errors"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"godat/hw"
)

// The table is typed from DAT's header, not from the code.
func TestNumbersAreDATs(t *testing.T) {
	for _, tc := range []struct {
		n      Number
		value  uint32
		stream Streams
		fails  bool
		name   string
	}{
		{DTOCompletion, 0x00001, 0x020, false, "DTO_COMPLETION"},
		{BindCompletion, 0x01001, 0x080, false, "RMR_BIND_COMPLETION"},
		{ConnectionRequest, 0x02001, 0x010, false, "CONNECTION_REQUEST"},
		{Established, 0x04001, 0x040, false, "ESTABLISHED"},
		{PeerRejected, 0x04002, 0x040, true, "PEER_REJECTED"},
		{NonPeerRejected, 0x04003, 0x040, true, "NON_PEER_REJECTED"},
		{AcceptCompletionError, 0x04004, 0x040, true, "ACCEPT_COMPLETION_ERROR"},
		{Disconnected, 0x04005, 0x040, false, "DISCONNECTED"},
		{Broken, 0x04006, 0x040, true, "BROKEN"},
		{TimedOut, 0x04007, 0x040, true, "TIMED_OUT"},
		{Unreachable, 0x04008, 0x040, true, "UNREACHABLE"},
		{AsyncEVDOverflow, 0x08001, 0x100, true, "ASYNC_EVD_OVERFLOW"},
		{AsyncIACatastrophic, 0x08002, 0x100, true, "ASYNC_IA_CATASTROPHIC"},
		{AsyncEPBroken, 0x08003, 0x100, true, "ASYNC_EP_BROKEN"},
		{AsyncTimedOut, 0x08004, 0x100, true, "ASYNC_TIMED_OUT"},
		{AsyncProviderError, 0x08005, 0x100, true, "ASYNC_PROVIDER_INTERNAL_ERROR"},
		{SoftwareEvent, 0x10001, 0x001, false, "SOFTWARE"},
		{IBDTOEvent, 0x40000, 0x020, false, "IB_DTO"},
		{Number(0x77), 0x77, 0, false, "Number(0x77)"},
	} {
		assert.EqualValues(t, tc.value, tc.n, tc.name)
		assert.Equal(t, tc.stream, tc.n.Stream(), tc.name)
		assert.Equal(t, tc.name, tc.n.String())
		assert.Equal(t, tc.fails, tc.n.Err() != nil, tc.name)
		assert.Equal(t, tc.fails, Event{Number: tc.n}.Err() != nil, tc.name)
		if tc.fails {
			assert.ErrorIs(t, tc.n.Err(), Error(tc.n))
			assert.ErrorContains(t, tc.n.Err(), tc.name)
		}
		carries := map[Number]bool{DTOCompletion: true, BindCompletion: true, IBDTOEvent: true}
		assert.Equal(t, carries[tc.n], tc.n.Completion(), tc.name)
	}
}

func TestEventErrorsMatchTheGeneralWords(t *testing.T) {
	assert.ErrorIs(t, TimedOut.Err(), hw.ErrTimeout)
	assert.ErrorIs(t, AsyncTimedOut.Err(), os.ErrDeadlineExceeded)
	assert.ErrorIs(t, Unreachable.Err(), hw.ErrInvalidAddress)
	assert.NotErrorIs(t, Broken.Err(), hw.ErrTimeout)
	assert.NotErrorIs(t, Broken.Err(), Error(TimedOut))
	var e Error
	assert.True(t, errors.As(PeerRejected.Err(), &e))
	assert.Equal(t, PeerRejected, Number(e))

	failed := Event{Number: DTOCompletion, Status: hw.StatusRemoteAccess}
	assert.Equal(t, hw.StatusError(hw.StatusRemoteAccess), failed.Err())
	assert.NoError(t, Event{Number: BindCompletion}.Err())
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		_ = failed.Err()
		_ = Event{Number: Broken}.Err()
	}))
}

func TestAccessorsAnswerForTheirOwnEventsOnly(t *testing.T) {
	source := new(int)
	completion := Event{
		Number: DTOCompletion, Op: hw.OpRecv, Length: 5, Cookie: 9, Source: source,
		Flags: HasImm | Solicited, Key: 77,
	}
	invalidated := Event{Number: DTOCompletion, Op: hw.OpRecvInvalidate, Flags: Invalidated, Key: 88}
	established := Event{Number: Established, Source: source, Data: []byte("hi")}
	bare := Event{Number: Disconnected, Source: source}
	software := Event{Number: SoftwareEvent, Data: "x"}
	async := Event{Number: AsyncEPBroken, Source: source, Data: ReasonOther}

	imm, ok := completion.Immediate()
	assert.True(t, ok)
	assert.EqualValues(t, 77, imm)
	_, ok = completion.InvalidatedContext()
	assert.False(t, ok)
	key, ok := invalidated.InvalidatedContext()
	assert.True(t, ok)
	assert.EqualValues(t, 88, key)
	_, ok = invalidated.Immediate()
	assert.False(t, ok)

	assert.Equal(t, []byte("hi"), established.Private())
	assert.Nil(t, bare.Private())

	payload, ok := software.Software()
	assert.True(t, ok)
	assert.Equal(t, "x", payload)

	from, why, ok := async.Async()
	assert.True(t, ok)
	assert.Same(t, source, from)
	assert.Equal(t, ReasonOther, why)

	for _, ev := range []Event{completion, established, software, async, {}} {
		_, isSoft := ev.Software()
		_, _, isAsync := ev.Async()
		n := 0
		for _, is := range []bool{ev.Number.Completion(), ev.Private() != nil, isSoft, isAsync} {
			if is {
				n++
			}
		}
		if ev.Number == 0 {
			assert.Zero(t, n)
		} else {
			assert.Equal(t, 1, n, ev)
		}
	}
}

func TestStringsAreForPeople(t *testing.T) {
	for want, s := range map[string]interface{ String() string }{
		"DTO_COMPLETION{SEND SUCCESS cookie=0x9 len=5}": Event{Number: DTOCompletion, Cookie: 9, Length: 5},
		"ESTABLISHED{private=2 bytes}":                  Event{Number: Established, Data: []byte("hi")},
		"DISCONNECTED":                                  Event{Number: Disconnected},
		"SOFTWARE{x}":                                   Event{Number: SoftwareEvent, Data: "x"},
		"none":                                          Streams(0),

		"SOFTWARE|CR|DTO|CONNECTION|RMR_BIND|ASYNC": DefaultStreams | StreamSoftware,
	} {
		assert.Equal(t, want, s.String())
	}
}

func TestDefaultStreamsAreAllButSoftware(t *testing.T) {
	assert.EqualValues(t, 0x1f0, DefaultStreams)
	assert.EqualValues(t, 0x1f1, DefaultStreams|StreamSoftware)
}

// An event and the ring's word make one cache line. The two interfaces in it are
// four words: 32 bytes, or 16 where a pointer has 32 bits.
func TestEventIs56Bytes(t *testing.T) {
	assert.EqualValues(t, 24+4*unsafe.Sizeof(uintptr(0)), unsafe.Sizeof(Event{}))
}
