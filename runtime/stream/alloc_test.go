//go:build !race

package stream

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestReadAndWriteAllocateNothing(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		client, server := r.pair()
		for _, n := range []int{64, 4096} {
			p := make([]byte, n)
			// Each end is used by this goroutine alone, and a Read that must wait does so.
			turn := func() {
				for _, c := range [][2]*Conn{{client, server}, {server, client}} {
					_, err := c[0].Write(p)
					if err == nil {
						_, err = io.ReadFull(c[1], p)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			for range 100 {
				turn()
			}
			assert.Zero(t, testing.AllocsPerRun(200, turn), "%d bytes", n)
		}
	})
}

func TestALargeWriteAllocatesNothing(t *testing.T) {
	for _, provider := range []string{"loop", "iwarp:127.0.0.1"} {
		r := newRig(t, provider, Config{Ring: 1 << 20})
		client, server := r.pair()
		p := make([]byte, 128<<10)
		turn := func() {
			_, err := client.Write(p)
			if err == nil {
				_, err = io.ReadFull(server, p)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for range 20 {
			turn()
		}
		assert.Zero(t, testing.AllocsPerRun(100, turn), provider)
	}
}
