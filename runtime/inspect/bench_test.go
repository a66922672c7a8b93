package inspect

import (
	"testing"

	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

// BenchmarkScrape is what somebody who looks at 10 000 connections costs:
//
//	go test ./runtime/inspect -run '^$' -bench Scrape -benchtime 20x
func BenchmarkScrape(b *testing.B) {
	const pairs = 5000
	ia, err := dat.Open(b.Context(), "loop")
	require.NoError(b, err)
	defer ia.Close()
	ln, err := ia.Listen(b.Context(), "", dat.ConnConfig{Depth: 1, Message: 64, Conns: 2 * pairs})
	require.NoError(b, err)
	for range pairs {
		_, err = ln.Dial(ln.Addr(), nil)
		require.NoError(b, err)
		_, err = ln.Accept(dat.RequestOf(<-ln.Requests()), nil)
		require.NoError(b, err)
		for range 2 {
			require.Equal(b, dat.Established, (<-ln.Events()).Number)
		}
	}
	b.Run("snapshot", func(b *testing.B) {
		for b.Loop() {
			s, err := ia.Snapshot()
			require.NoError(b, err)
			require.Len(b, s.Conns, 2*pairs)
		}
	})
	b.Run("troubles", func(b *testing.B) {
		h := New(ia)
		for b.Loop() {
			h.adapters[0].forget()
			_, err := h.adapters[0].look()
			require.NoError(b, err)
		}
	})
}
