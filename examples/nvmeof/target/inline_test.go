package target

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/nvme"
)

func TestDataThatIsNotInTheCapsuleIsRefused(t *testing.T) {
	onEach(t, func(f *fixture) {
		q := rawHost(f)
		for _, x := range []struct {
			offset uint64
			length uint32
			inside int // bytes behind the command
			want   nvme.Status
		}{
			{0, 4096, 4096, nvme.Success},
			{0, 4096, 4095, nvme.OffsetInvalid},
			{1, 4096, 4096, nvme.OffsetInvalid},
			{4096, 4096, 4096, nvme.OffsetInvalid},
			{4097, 4096, 4096, nvme.OffsetInvalid},
			{1 << 32, 4096, 4096, nvme.OffsetInvalid},
			{1 << 63, 4096, 4096, nvme.OffsetInvalid},
			{^uint64(0), 4096, 4096, nvme.OffsetInvalid},
			{^uint64(0) - 4095, 4096, 4096, nvme.OffsetInvalid},
			{8, 4096, 0, nvme.OffsetInvalid},
		} {
			for _, op := range []nvme.Opcode{nvme.IOWrite, nvme.IOCompare, nvme.IODataset} {
				c := nvme.Command{Opcode: op, NSID: 1, Flags: nvme.UsesList, CDW11: 0}
				c.Data = nvme.Descriptor{Type: nvme.InCapsule, Address: x.offset, Length: x.length}
				completion := rawExchange(f, q, append(rawCommand(c), make([]byte, x.inside)...))
				assert.Equal(f, x.want, completion.Status.Code(), "opcode %d, %+v", op, x)
			}
		}

		admin := rawQueue(f, f.ia, f.target, 0)
		capsule := rawConnect(0, nvme.DynamicController)
		binary.LittleEndian.PutUint64(capsule[24:], 1<<63)
		assert.Equal(f, nvme.OffsetInvalid, rawExchange(f, admin, capsule).Status.Code(), "the data of Connect")
		require.Equal(f, nvme.Success, rawExchange(f, admin, rawConnect(0, nvme.DynamicController)).Status)
	})
}
