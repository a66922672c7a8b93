package target

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/nvme"
	dat "godat/runtime"
)

// rawHost connects a controller with an I/O queue.
func rawHost(f *fixture) *dat.Conn {
	admin := rawQueue(f, f.ia, f.target, 0)
	id := rawExchange(f, admin, rawConnect(0, nvme.DynamicController))
	require.Equal(f, nvme.Success, id.Status)
	enable := nvme.PropertySet(nvme.PropertyCC, nvme.ConfigEnable)
	require.Equal(f, nvme.Success, rawExchange(f, admin, rawCommand(enable)).Status)
	q := rawQueue(f, f.ia, f.target, 1)
	require.Equal(f, nvme.Success, rawExchange(f, q, rawConnect(1, uint16(id.Result))).Status)
	return q
}

func TestAKeyOfOneHostWorksForNoOther(t *testing.T) {
	onEach(t, func(f *fixture) {
		owner := rawHost(f)
		region, err := owner.Alloc(4096, everything)
		require.NoError(f, err)
		copy(region.Bytes(), "the owner's")
		where := region.Remote(0, 4096)
		command := func(op nvme.Opcode) []byte {
			c := nvme.Command{Opcode: op, NSID: 1, Flags: nvme.UsesList}
			c.Data = nvme.Descriptor{Type: nvme.Keyed, Address: where.Addr, Length: 4096, Key: where.Context}
			return rawCommand(c)
		}
		for _, op := range []nvme.Opcode{nvme.IORead, nvme.IOWrite, nvme.IOCompare} {
			thief := rawHost(f)
			require.NoError(f, thief.SendBytes(command(op)))
			// A Read's completion may come before the end: it was sent behind the data, and
			// the data is what breaks the connection.
			require.Error(f, drain(f.within(), thief), "opcode %d", op)
			assert.Equal(f, "the owner's", string(region.Bytes()[:11]))
			assert.Zero(f, f.stores[0].Memory()[0], "nor does the disk have it")
		}
		assert.Equal(f, nvme.Success, rawExchange(f, owner, command(nvme.IOWrite)).Status)
		assert.Equal(f, "the owner's", string(f.stores[0].Memory()[:11]))
	})
}
