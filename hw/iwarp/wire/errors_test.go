package wire_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw/iwarp/wire"
)

func TestEveryErrorNamesADefinedTerminateAndItsOwnText(t *testing.T) {
	texts := map[string]string{}
	for name, err := range errorsByName {
		assert.NotEqual(t, "unknown", err.Term.Text(), "%s: %v", name, err.Term)
		assert.Contains(t, err.Error(), "iwarp: ")
		assert.Empty(t, texts[err.Error()], "%s has another's text", name)
		texts[err.Error()] = name
	}
}

func TestEveryTerminateCodeOfTheRFCsHasAnError(t *testing.T) {
	have := map[wire.TermCode]bool{}
	for _, err := range errorsByName {
		have[err.Term] = true
	}
	for _, row := range termRows {
		assert.True(t, have[row.code], "%v", row.code)
	}
}

func TestAWrappedErrorStillHasItsTerminate(t *testing.T) {
	err := fmt.Errorf("conn 7: %w", wire.ErrCRC)
	var we *wire.Error
	require.ErrorAs(t, err, &we)
	assert.Equal(t, wire.TermMPACRC, we.Term)
	require.ErrorIs(t, err, wire.ErrCRC)
	assert.NotErrorIs(t, err, wire.ErrMarker)
}

func TestIncompleteIsNoErrorOfThePeer(t *testing.T) {
	var we *wire.Error
	assert.False(t, errors.As(wire.ErrIncomplete, &we))
}

// The causes after which no Terminate can be sent, typed from RFC 5044 section
// 8 (codes 1 and 4) and RFC 5040 section 5.4 (nothing follows a Terminate).
func TestOnlyErrorsWithoutAStreamCloseWithoutTerminate(t *testing.T) {
	closes := map[string]bool{
		"ErrMPAKey": true, "ErrMPARole": true, "ErrMPARevision": true, "ErrMPAPrivateLong": true,
		"ErrMPAPrivateShort": true, "ErrMPAMode": true, "ErrLost": true, "ErrTerminate": true,
	}
	for name, err := range errorsByName {
		assert.Equal(t, closes[name], err.Close, name)
	}
}
