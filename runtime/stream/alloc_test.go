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
