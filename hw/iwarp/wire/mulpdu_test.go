package wire_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/hw/iwarp/wire"
)

func TestTheMULPDUFollowsFromTheSegmentSize(t *testing.T) {
	for _, row := range []struct {
		name           string
		emss           int
		plain, markers int
	}{
		{"Ethernet with timestamps", 1448, 1442, 1430},
		{"Ethernet", 1460, 1454, 1442},
		{"an odd segment loses its remainder", 1447, 1438, 1426},
		{"jumbo frames", 8948, 8942, 8870},
		{"one marker interval", 512, 506, 502},
		{"one octet more", 513, 506, 498},
		{"the least", 134, 128, 128},
		{"less than the least", 100, wire.MinMULPDU, wire.MinMULPDU},
		{"nothing known", 0, wire.MinMULPDU, wire.MinMULPDU},
		{"loopback", 65483, wire.MaxULPDU, wire.MaxULPDU},
	} {
		t.Run(row.name, func(t *testing.T) {
			assert.Equal(t, row.plain, wire.MULPDU(row.emss, false))
			assert.Equal(t, row.markers, wire.MULPDU(row.emss, true))
		})
	}
}

func TestAnFPDUOfMULPDUFitsItsSegment(t *testing.T) {
	for emss := 152; emss < 3000; emss++ {
		assert.LessOrEqual(t, wire.FPDUSize(wire.MULPDU(emss, false)), emss)
		for pos := uint64(0); pos < wire.MarkerInterval; pos += 4 {
			if n := wire.MarkedSize(pos, wire.MULPDU(emss, true)); n > emss {
				t.Fatalf("EMSS %d, position %d: %d octets", emss, pos, n)
			}
		}
	}
}
