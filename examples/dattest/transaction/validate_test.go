package transaction

import (
	"testing"

	"github.com/stretchr/testify/require"

	"godat/examples/dattest/wire"
	dat "godat/runtime"
)

func TestValidationFindsOneByte(t *testing.T) {
	ia, err := dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	defer func() { require.NoError(t, ia.Close()) }()
	pz, err := ia.NewPZ()
	require.NoError(t, err)
	barrier := wire.Op{Transfer: wire.SendRecv, Segments: 1, Size: 8}
	for name, o := range map[string]wire.Op{
		"a receive":           {Server: true, Transfer: wire.SendRecv, Segments: 2, Size: 300},
		"a write of the peer": {Server: true, Transfer: wire.RDMAWrite, Segments: 2, Size: 300},
		"a read":              {Transfer: wire.RDMARead, Segments: 2, Size: 300},
	} {
		t.Run(name, func(t *testing.T) {
			side := &Side{IA: ia, Test: &wire.Transaction{
				Iterations: 9, Threads: 1, EPs: 1, Validate: true, Ops: []wire.Op{o, barrier, barrier, barrier},
			}}
			th := &thread{side: side}
			e, err := th.open(pz, 0)
			require.NoError(t, err)
			defer func() { require.NoError(t, e.link.Close()) }()
			th.ends = []*end{e}

			require.NoError(t, th.validate(0, 4), "not before the barrier")
			require.ErrorContains(t, th.validate(1, 4), "byte 0 is 0x0, expected 0x5")
			b := e.pools[0].Bytes()
			for i := range b {
				b[i] = 5
			}
			require.NoError(t, th.validate(1, 4))
			b[270] = 6 // within the first segment of 300
			require.ErrorContains(t, th.validate(1, 4), "byte 270 is 0x6, expected 0x5")
		})
	}
}
