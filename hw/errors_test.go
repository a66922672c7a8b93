package hw

import (
	"context"
	"errors"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// declared counts the constants of a type that codes.go declares.
func declared(t *testing.T, typ string) int {
	t.Helper()
	source, err := os.ReadFile("codes.go")
	require.NoError(t, err)
	return len(regexp.MustCompile(`(?m)^\t\w+ +`+typ+` += `).FindAll(source, -1))
}

func TestEveryTypeAndSubtypeHasItsText(t *testing.T) {
	types, subtypes := 0, 0
	seen := map[string]Type{}
	for n := range 1 << 14 {
		typ := Type(n)
		if s := typ.String(); !strings.HasPrefix(s, "Type(") {
			types++
			assert.NotContains(t, seen, s, "two types have one text")
			seen[s] = typ
			assert.NotEmpty(t, s)
		}
	}
	assert.Equal(t, declared(t, "Type"), types)
	for n := range 1 << 16 {
		if s := Subtype(n).String(); !strings.HasPrefix(s, "Subtype(") {
			subtypes++
			assert.NotEmpty(t, s)
			assert.Equal(t, subtypes-1, n, "the subtypes have no gap")
		}
	}
	assert.Equal(t, 104, subtypes)
	assert.Equal(t, declared(t, "Subtype"), subtypes)
}

func TestStrerrorSplitsACode(t *testing.T) {
	for code, want := range map[uint32][2]string{
		0:          {"success", ""},
		0x80050000: {"invalid handle", ""},
		0x80070033: {"invalid state", "EP connected"},
		0x00070033: {"invalid state", "EP connected"}, // as the C library defines it
		0x40070033: {"invalid state", "EP connected"}, // a warning
		0x800a0065: {"provider not found", "major version not found"},
		0xbfff0000: {"not implemented", ""},
		0x90000000: {"extension", ""},
		0x80180068: {"Type(0x18)", "Subtype(104)"},
	} {
		major, minor := Strerror(code)
		assert.Equal(t, want, [2]string{major, minor}, "%#x", code)
	}
}

func TestACodeIsSplitIntoWhatItWasMadeOf(t *testing.T) {
	for typ := range typeText {
		for sub := range Subtype(len(subtypeText)) {
			e := &Error{Type: typ, Sub: sub}
			gotType, gotSub := ParseCode(e.Code())
			if typ == Success {
				sub = NoSubtype // success has none
			}
			assert.Equal(t, typ, gotType)
			assert.Equal(t, sub, gotSub)
			major, minor := Strerror(e.Code())
			assert.Equal(t, typ.String(), major)
			assert.Equal(t, sub == NoSubtype, minor == "")
		}
	}
}

func TestAnErrorSaysWhatItIs(t *testing.T) {
	cause := errors.New("cause")
	for want, e := range map[string]*Error{
		"invalid state": {Type: InvalidState},
		"ep.Connect: invalid state (EP connected)": {Op: "ep.Connect", Type: InvalidState, Sub: StateEPConnected},
		"x: length error: 3 bytes":                 Errorf("x", LengthError, NoSubtype, "%d bytes", 3),
		"invalid parameter (argument 2)":           {Type: InvalidParameter, Sub: Arg2},
		"x: internal error: cause":                 {Op: "x", Type: InternalError, Err: cause},
		"x: invalid parameter: of: cause":          Errorf("x", InvalidParameter, Arg2, "of: %w", cause),
	} {
		assert.Equal(t, want, e.Error())
	}
	require.ErrorIs(t, Errorf("x", LengthError, NoSubtype, "of: %w", cause), cause)
}

func TestErrorsMatchTheStandardLibrarysWords(t *testing.T) {
	for typ, words := range map[Type][]error{
		TimeoutExpired:    {os.ErrDeadlineExceeded, context.DeadlineExceeded, ErrTimeout},
		InterruptedCall:   {context.Canceled, ErrInterrupted},
		Abort:             {net.ErrClosed, ErrAbort},
		ModelNotSupported: {errors.ErrUnsupported, ErrModelNotSupported},
		NotImplemented:    {errors.ErrUnsupported, ErrNotImplemented},
		CommNotSupported:  {errors.ErrUnsupported, ErrCommNotSupported},
	} {
		for _, word := range words {
			require.ErrorIs(t, &Error{Type: typ}, word)
			require.NotErrorIs(t, &Error{Type: InternalError}, word)
		}
		assert.Equal(t, typ == TimeoutExpired, (&Error{Type: typ}).Timeout())
	}
	e := &Error{Type: InvalidState, Sub: StateEPConnected}
	require.ErrorIs(t, e, &Error{Type: InvalidState, Sub: StateEPConnected})
	require.NotErrorIs(t, e, &Error{Type: InvalidState, Sub: StateEPReserved})
	require.NotErrorIs(t, e, ErrAbort)
}
