//go:build !race

package target

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/examples/nvmeof/nvme"
)

func TestAnIOCommandAllocatesNothing(t *testing.T) {
	onEach(t, func(f *fixture) {
		d := f.disk(f.connect(nil), 1)
		b, ctx := make([]byte, 8192), f.within()
		for name, io := range map[string]func() error{
			"read":         func() error { _, err := d.ReadAt(b, 0); return err },
			"write":        func() error { _, err := d.WriteAt(b, 0); return err },
			"in a capsule": func() error { _, err := d.WriteAt(b[:4096], 0); return err },
			"stable":       func() error { _, err := d.WriteStable(b[:4096], 0); return err },
			"compare":      func() error { return d.Compare(b, 0) },
			"flush":        func() error { return d.Flush(ctx) },
			"zeroes":       func() error { return d.WriteZeroes(ctx, 0, 4096, false) },
			"dataset":      func() error { _, err := d.Do(ctx, nvme.Command{Opcode: nvme.IODataset, NSID: 1}, b[:16]); return err },
		} {
			run := func() {
				if err := io(); err != nil {
					f.Error(name, err)
				}
			}
			for range 100 {
				run() // first uses
			}
			assert.Zero(f, testing.AllocsPerRun(100, run), name)
		}
	})
}
