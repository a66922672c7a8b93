package runtime

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
)

func TestAConnectionRegistersNoMemoryThatItsPeerCouldNotWrite(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l, client, server := both(t, ia, ConnConfig{})
		memory, err := syscall.Mmap(-1, 0, os.Getpagesize(), syscall.PROT_READ, syscall.MAP_PRIVATE|syscall.MAP_ANON)
		require.NoError(t, err)
		_, err = server.Register(memory, hw.LocalRead|hw.RemoteWrite)
		require.ErrorIs(t, err, syscall.EFAULT)
		require.ErrorIs(t, err, hw.ErrInvalidParameter)
		m, err := server.Register(memory, hw.LocalRead|hw.RemoteRead)
		require.NoError(t, err)
		into, err := client.Alloc(64, hw.LocalWrite)
		require.NoError(t, err)
		require.NoError(t, client.Do(within(t), ep.DTO{Op: hw.OpRead, Segment: into.Segment(0, 64), Remote: m.Remote(0, 64)}))
		require.NoError(t, client.Close())
		require.NoError(t, l.Close())
		require.NoError(t, syscall.Munmap(memory))
	})
}
