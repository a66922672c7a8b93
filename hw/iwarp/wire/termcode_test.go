package wire_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/hw/iwarp/wire"
)

// termRows holds the codes of RFC 5040 figure 9, RFC 5041 section 7.2, RFC 5044 section 8
// and RFC 6581 section 8, typed from them.
var termRows = []struct {
	code               wire.TermCode
	layer, etype, term uint8
	words              string
}{
	{wire.TermRDMAPLocal, 0, 0, 0x00, "RDMAP: local catastrophic"},
	{wire.TermProtectionSTag, 0, 1, 0x00, "invalid STag"},
	{wire.TermProtectionBounds, 0, 1, 0x01, "base or bounds"},
	{wire.TermProtectionAccess, 0, 1, 0x02, "access rights"},
	{wire.TermProtectionStream, 0, 1, 0x03, "not associated"},
	{wire.TermProtectionWrap, 0, 1, 0x04, "wraps"},
	{wire.TermProtectionInvalidate, 0, 1, 0x09, "can't be invalidated"},
	{wire.TermProtectionUnspecified, 0, 1, 0xff, "unspecified"},
	{wire.TermOperationVersion, 0, 2, 0x05, "version"},
	{wire.TermOperationOpcode, 0, 2, 0x06, "opcode"},
	{wire.TermOperationStream, 0, 2, 0x07, "catastrophic for the stream"},
	{wire.TermOperationGlobal, 0, 2, 0x08, "global"},
	{wire.TermOperationInvalidate, 0, 2, 0x09, "can't be invalidated"},
	{wire.TermOperationUnspecified, 0, 2, 0xff, "unspecified"},
	{wire.TermDDPLocal, 1, 0, 0x00, "DDP: local catastrophic"},
	{wire.TermTaggedSTag, 1, 1, 0x00, "invalid STag"},
	{wire.TermTaggedBounds, 1, 1, 0x01, "base or bounds"},
	{wire.TermTaggedStream, 1, 1, 0x02, "not associated"},
	{wire.TermTaggedWrap, 1, 1, 0x03, "wraps"},
	{wire.TermTaggedVersion, 1, 1, 0x04, "version"},
	{wire.TermUntaggedQueue, 1, 2, 0x01, "queue"},
	{wire.TermUntaggedNoBuffer, 1, 2, 0x02, "no buffer"},
	{wire.TermUntaggedMSN, 1, 2, 0x03, "message number"},
	{wire.TermUntaggedMO, 1, 2, 0x04, "message offset"},
	{wire.TermUntaggedTooLong, 1, 2, 0x05, "too long"},
	{wire.TermUntaggedVersion, 1, 2, 0x06, "version"},
	{wire.TermMPALost, 2, 0, 0x01, "lost"},
	{wire.TermMPACRC, 2, 0, 0x02, "CRC"},
	{wire.TermMPAMarker, 2, 0, 0x03, "marker"},
	{wire.TermMPARequest, 2, 0, 0x04, "Request or Reply"},
	{wire.TermMPALocal, 2, 0, 0x05, "local catastrophic"},
	{wire.TermMPAIRD, 2, 0, 0x06, "IRD"},
	{wire.TermMPARTR, 2, 0, 0x07, "RTR"},
}

func TestTermCodesAreNumberedAsInTheRFCs(t *testing.T) {
	for _, row := range termRows {
		assert.Equal(t, wire.Layer(row.layer), row.code.Layer())
		assert.Equal(t, row.etype, row.code.Type())
		assert.Equal(t, row.term, row.code.Code())
		assert.Contains(t, row.code.String(), row.words)
	}
}

func TestExactlyTheCodesOfTheRFCsAreKnown(t *testing.T) {
	defined := map[wire.TermCode]bool{}
	for _, row := range termRows {
		defined[row.code] = true
	}
	for c := range wire.TermCode(0x3000) {
		rdmapLocal := c.Layer() == wire.LayerRDMAP && c.Type() == wire.TypeCatastrophic // any code will do
		assert.Equal(t, defined[c] || rdmapLocal, c.Text() != "unknown", "%v", c)
	}
}

func TestAnUnknownCodeIsPrintedInNumbers(t *testing.T) {
	assert.Equal(t, "unknown (2/0/63)", wire.TermCode(0x2063).String())
	assert.Equal(t, "RDMAP: local catastrophic error (0/0/ff)", wire.TermCode(0x00ff).String())
}
