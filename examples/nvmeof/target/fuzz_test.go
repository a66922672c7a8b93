package target

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/store"
	dat "godat/runtime"
)

// FuzzCapsules lets a host send any capsule on its admin queue and any on an I/O queue,
// and then demands that the target serves another host.
func FuzzCapsules(f *testing.F) {
	ia, err := dat.Open(context.Background(), "loop")
	require.NoError(f, err)
	s, err := store.NewMemory(1 << 20)
	require.NoError(f, err)
	target, err := New(context.Background(), ia, Config{
		Subsystem: subsystem, Namespaces: []Namespace{{Store: s}}, Depth: 32, Controllers: 64, HostControllers: 64,
		Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(f, err)
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- target.Run(ctx) }()
	honest, err := host.Connect(ctx, ia, host.Config{Addr: target.Addr(), Subsystem: subsystem, KeepAlive: -1})
	require.NoError(f, err)
	disk, err := honest.Disk(ctx, 1)
	require.NoError(f, err)
	f.Cleanup(func() {
		require.NoError(f, honest.Close())
		stop()
		require.NoError(f, <-ran)
		require.NoError(f, ia.CloseGraceful())
		require.NoError(f, s.Close())
	})
	for _, c := range []nvme.Command{
		{Opcode: nvme.IORead, NSID: 1, Flags: nvme.UsesList, Data: nvme.Descriptor{Type: nvme.Keyed, Length: 4096}},
		{Opcode: nvme.IOWrite, NSID: 1, Flags: nvme.UsesList, Data: nvme.Descriptor{Type: nvme.InCapsule, Length: 4096}},
		{Opcode: nvme.IOCompare, NSID: 1, Flags: nvme.UsesList, Data: nvme.Descriptor{Type: nvme.InCapsule, Length: 4096}},
		{Opcode: nvme.IODataset, NSID: 1, Flags: nvme.UsesList, Data: nvme.Descriptor{Type: nvme.InCapsule, Length: 16}, CDW11: 4},
		{Opcode: nvme.IOWriteZeroes, NSID: 1, Flags: nvme.UsesList},
		{Opcode: nvme.IOFlush, NSID: nvme.AllNamespaces, Flags: nvme.UsesList},
		nvme.Identify(nvme.IdentifyActiveList, 0), nvme.GetLogPage(nvme.LogHealth, 0, 512),
		nvme.PropertySet(nvme.PropertyCC, 0), nvme.SetFeature(nvme.FeatureKeepAlive, 1),
	} {
		f.Add(rawCommand(c), append(rawCommand(c), make([]byte, inCapsule)...))
	}
	f.Add([]byte{}, []byte("short"))
	f.Fuzz(func(t *testing.T, admin, io []byte) {
		a := rawQueue(t, ia, target, 0)
		id := rawExchange(t, a, rawConnect(0, nvme.DynamicController))
		require.Equal(t, nvme.Success, id.Status)
		require.Equal(t, nvme.Success, rawExchange(t, a, rawCommand(nvme.PropertySet(nvme.PropertyCC, nvme.ConfigEnable))).Status)
		q := rawQueue(t, ia, target, 1)
		require.Equal(t, nvme.Success, rawExchange(t, q, rawConnect(1, uint16(id.Result))).Status)
		// An error says that the target has ended the connection.
		_ = q.SendBytes(io[:min(len(io), nvme.CommandLen+inCapsule)])
		_ = a.SendBytes(admin[:min(len(admin), nvme.CommandLen+inCapsule)])
		_, err = disk.ReadAt(make([]byte, 4096), 0)
		require.NoError(t, err)
	})
}
