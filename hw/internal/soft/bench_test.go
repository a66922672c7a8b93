package soft

import (
	"testing"

	"github.com/stretchr/testify/require"

	"godat/hw"
)

func BenchmarkReach(b *testing.B) {
	var z Zone
	tab := newTable(1 << 16)
	r, _ := area(&z, 64, 0)
	key, err := tab.insert(r)
	require.NoError(b, err)
	v := NewView(tab, &QP{Zone: &z})
	for b.Loop() {
		if v.Reach(8, 8, key, hw.LocalRead) == nil {
			b.Fatal("not reached")
		}
	}
}
