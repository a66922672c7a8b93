package wire_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/hw/iwarp/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// unhex decodes hexadecimal octets, and ignores white space.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	require.NoError(t, err)
	return b
}

// zeros24 is the payload of RFC 5044's sample FPDUs.
const zeros24 = "00000000 00000000 00000000 00000000 00000000 00000000"

// errorsByName has every error value that calls for a Terminate.
var errorsByName = map[string]*wire.Error{
	"ErrMPAKey": wire.ErrMPAKey, "ErrMPARole": wire.ErrMPARole, "ErrMPARevision": wire.ErrMPARevision,
	"ErrMPAPrivateLong": wire.ErrMPAPrivateLong, "ErrMPAPrivateShort": wire.ErrMPAPrivateShort,
	"ErrMPAMode": wire.ErrMPAMode, "ErrMPALocal": wire.ErrMPALocal, "ErrMPAIRD": wire.ErrMPAIRD,
	"ErrMPARTR": wire.ErrMPARTR, "ErrLost": wire.ErrLost, "ErrCRC": wire.ErrCRC, "ErrMarker": wire.ErrMarker,
	"ErrULPDUShort": wire.ErrULPDUShort, "ErrULPDULong": wire.ErrULPDULong,
	"ErrDDPLocal": wire.ErrDDPLocal, "ErrTaggedSTag": wire.ErrTaggedSTag, "ErrTaggedAccess": wire.ErrTaggedAccess, "ErrTaggedBounds": wire.ErrTaggedBounds,
	"ErrTaggedStream": wire.ErrTaggedStream, "ErrTaggedWrap": wire.ErrTaggedWrap, "ErrTaggedVersion": wire.ErrTaggedVersion,
	"ErrQueue": wire.ErrQueue, "ErrNoBuffer": wire.ErrNoBuffer, "ErrMSN": wire.ErrMSN, "ErrMO": wire.ErrMO,
	"ErrTooLong": wire.ErrTooLong, "ErrUntaggedVersion": wire.ErrUntaggedVersion,
	"ErrRDMAPLocal": wire.ErrRDMAPLocal, "ErrSTag": wire.ErrSTag, "ErrBounds": wire.ErrBounds, "ErrAccess": wire.ErrAccess,
	"ErrStream": wire.ErrStream, "ErrWrap": wire.ErrWrap, "ErrInvalidate": wire.ErrInvalidate, "ErrProtection": wire.ErrProtection,
	"ErrRDMAPVersion": wire.ErrRDMAPVersion, "ErrOpcode": wire.ErrOpcode, "ErrOpcodeModel": wire.ErrOpcodeModel,
	"ErrOpcodeQueue": wire.ErrOpcodeQueue, "ErrAtomicOp": wire.ErrAtomicOp, "ErrCatastrophic": wire.ErrCatastrophic,
	"ErrReadLimit": wire.ErrReadLimit, "ErrMisaligned": wire.ErrMisaligned, "ErrGlobal": wire.ErrGlobal,
	"ErrInvalidateOperation": wire.ErrInvalidateOperation, "ErrOperation": wire.ErrOperation, "ErrTerminate": wire.ErrTerminate,
}
