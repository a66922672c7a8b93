package beside

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/plain"
	"godat/hw/iwarp/wire"
	dat "godat/runtime"
)

// BenchmarkCommand measures each way alone, by elapsed and by processor time; Run
// measures them in turns.
func BenchmarkCommand(b *testing.B) {
	for _, p := range []struct{ name, device, address string }{
		{"loop", "loop", ""}, {"iwarp", "iwarp:127.0.0.1", "127.0.0.1:0"},
	} {
		for _, o := range ops {
			b.Run("way="+p.name+"/op="+o.name, func(b *testing.B) {
				require.NoError(b, withDisk(b.Context(), p.device, p.address, func(_ *dat.IA, d *disk) error {
					return move(b, depth, with("", o.op, d.run))
				}))
			})
		}
	}
	for name, checksum := range map[string]plain.Checksum{"net": nil, "net-crc": wire.UpdateCRC} {
		for _, o := range ops {
			b.Run("way="+name+"/op="+o.name, func(b *testing.B) {
				c, s, err := tcpPair(checksum)
				require.NoError(b, err)
				require.NoError(b, errors.Join(move(b, 1, with("", o.op, c.run)), c.Close(), <-s))
			})
		}
	}
	for _, device := range []string{"loop", "iwarp:127.0.0.1"} {
		for _, o := range ops {
			b.Run("way=posts/on="+device+"/op="+o.name, func(b *testing.B) {
				ia, err := dat.Open(b.Context(), device)
				require.NoError(b, err)
				p, err := newPosts(ia)
				require.NoError(b, err)
				require.NoError(b, errors.Join(move(b, depth, with("", o.op, p.run)), ia.Close()))
			})
		}
	}
	b.Run("way=plain/op=writes", func(b *testing.B) {
		ia, err := dat.Open(b.Context(), "loop")
		require.NoError(b, err)
		p, err := newWriter(b.Context(), ia)
		require.NoError(b, err)
		require.NoError(b, errors.Join(move(b, depth, way{"", p.run}), p.close(), ia.Close()))
	})
}

// move moves about b.N commands on a way that looks at its context once for each batch.
func move(b *testing.B, batch int, w way) error {
	b.Helper()
	b.ReportAllocs()
	b.ResetTimer()
	begin, before := time.Now(), processorTime()
	n, err := w.run(&counted{b.Context(), b.N / batch})
	b.ReportMetric(float64(time.Since(begin))/float64(n), "ns/op")
	b.ReportMetric(float64(processorTime()-before)/float64(n), "cpu-ns/op")
	return err
}

// counted is a context that is done after some looks at it.
type counted struct {
	context.Context
	looks int
}

func (c *counted) Err() error {
	if c.looks--; c.looks < 0 {
		return context.Canceled
	}
	return nil
}
