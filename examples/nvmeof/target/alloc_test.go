//go:build !race

package target

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
)

func TestAnIOCommandAllocatesNothing(t *testing.T) {
	onEach(t, func(f *fixture) {
		require.NoError(f, f.target.Set(3, Namespace{Store: &atOnce{newMemory(f.T, 1<<20), make([]byte, 1<<20)}}))
		c := f.connect(nil)
		d, w := f.disk(c, 1), f.disk(c, 3)
		b, ctx := make([]byte, 8192), f.within()
		for name, io := range map[string]func() error{
			"read":         func() error { _, err := d.ReadAt(b, 0); return err },
			"write":        func() error { _, err := d.WriteAt(b, 0); return err },
			"in a capsule": func() error { _, err := d.WriteAt(b[:4096], 0); return err },
			"a Writer":     func() error { _, err := w.WriteAt(b, 0); return err },
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

func TestAPipelineAllocatesNothing(t *testing.T) {
	onEach(t, func(f *fixture) {
		c, p := f.pipeline(nil)
		d, ctx, slots := f.disk(c, 1), f.within(), p.Slots()
		for name, submit := range map[string]func(*host.Slot) error{
			"read":  func(s *host.Slot) error { return p.Read(d, s, 4096, int64(s.Index())*4096) },
			"write": func(s *host.Slot) error { return p.Write(d, s, 4096, int64(s.Index())*4096) },
		} {
			run := func() {
				for i := range slots {
					if err := submit(&slots[i]); err != nil {
						f.Error(name, err)
					}
				}
				for left := len(slots); left > 0; {
					done, err := p.Wait(ctx)
					if err != nil {
						f.Fatal(name, err)
					}
					left -= len(done)
				}
			}
			for range 20 {
				run() // first uses
			}
			assert.Zero(f, testing.AllocsPerRun(100, run), name)
		}
	})
}
