package target

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/store"
)

func TestBlocksThatAFileLostAreErrorsAndTheOthersAreServed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("capability: mapped files")
	}
	for _, provider := range []string{"loop", "iwarp"} {
		t.Run(provider, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "disk")
			s, err := store.OpenFile(path, diskSize)
			require.NoError(t, err)
			f := start(t, provider, func(cfg *Config) { cfg.Namespaces = []Namespace{{Store: s}} })
			d := f.disk(f.connect(nil), 1)
			require.NoError(t, os.Truncate(path, diskSize/2))
			for _, n := range []int{4096, 128 << 10} {
				b := noise(n)
				for _, off := range []int64{diskSize / 2, diskSize - int64(n), diskSize/2 - int64(n) + 4096} {
					_, err = d.ReadAt(b, off)
					require.ErrorIs(t, err, nvme.StatusError(nvme.ReadError))
					if off >= diskSize/2 { // otherwise the blocks that are there differ
						require.ErrorIs(t, d.Compare(b, off), nvme.StatusError(nvme.ReadError))
					}
					_, err = d.WriteAt(b, off)
					require.ErrorIs(t, err, nvme.StatusError(nvme.WriteFault))
					require.ErrorIs(t, d.WriteZeroes(f.within(), off, int64(n), true), nvme.StatusError(nvme.WriteFault))
				}
				_, err = d.WriteAt(b, 4096)
				require.NoError(t, err)
				got := make([]byte, n)
				_, err = d.ReadAt(got, 4096)
				require.NoError(t, err)
				assert.True(t, bytes.Equal(b, got))
			}
		})
	}
}
