package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

var crowds = [...]int{1, 100, 1000, 10000}

// BenchmarkActive is what a pair costs when so many connections are active in turns. Its
// unit is the first line: two raw MPSC push and pop.
func BenchmarkActive(b *testing.B) {
	b.Run("anchor", func(b *testing.B) { twoMPSC().run(b.N) })
	for _, n := range crowds {
		s := newActive(n)
		run := s.pairs().run
		run(2 * n)
		b.Run(fmt.Sprintf("connections=%d", n), func(b *testing.B) { run(b.N) })
		s.close()
	}
}

// BenchmarkOpenAndClose is how long an adapter takes to come and go with so many
// connections.
func BenchmarkOpenAndClose(b *testing.B) {
	for _, n := range crowds {
		b.Run(fmt.Sprintf("connections=%d", n), func(b *testing.B) {
			for range b.N {
				newActive(n).close()
			}
		})
	}
}

func TestAPairAmongManyConnectionsAllocatesNothing(t *testing.T) {
	s := newActive(50)
	defer s.close()
	run := s.pairs().run
	run(100)
	assert.Zero(t, testing.AllocsPerRun(100, func() { run(50) }))
}
