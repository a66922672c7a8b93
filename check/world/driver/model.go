// Package driver is a program of the seeded world: random calls, one after the other, of which package model says what
// DAT demands. It makes the calls by the library's public API, and lets the model judge each result and each event.
package driver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"godat/check/world/posts"
	"godat/check/world/program"
	"godat/hw/fault"
	"godat/hw/loop"
	dat "godat/runtime"
)

// Name is that of the program.
const Name = "model"

// Names are those of all programs of a world without a volume.
var Names = append(slices.Clone(posts.Names), Name)

// Named returns a program by its name, for program.Main.
func Named(name string, size program.Size) (program.Program, error) {
	if name == Name {
		return &Model{Programs: size.Rounds}, nil
	}
	return posts.Named(name, size)
}

// Model is the program. It runs over loop alone, where all that a call causes has happened when the call returns.
type Model struct {
	Programs int // one after the other, on one adapter
	Steps    int // of a program, on average; 0 means 70
	// Long is whether programs post long transfers beside operations whose events go elsewhere, over a device that
	// completes in all ways that the contract allows. The waits and the CNOs that the events of the transfers end and
	// trigger must not need an event behind them. A seed draws it, too.
	Long bool

	seen *coverage
}

// Run runs the program.
func (m *Model) Run(w *program.World) error {
	if m.seen == nil {
		m.seen = newCoverage()
	}
	draw := w.Draw(0)
	m.Long = draw.IntN(3) == 0 || m.Long
	if m.Steps == 0 {
		m.Steps = 70
	}
	ia, err := m.open(w)
	if err != nil {
		return err
	}
	for number := range m.Programs {
		p := begin(ia, m.Long, m.seen)
		length := 1 + draw.IntN(2*m.Steps)
		err := m.play(w, p, number, length, nil)
		m.seen.lengths = append(m.seen.lengths, length)
		for _, line := range p.script {
			w.Step(fmt.Sprintf("program %d", number), "%s", line)
		}
		if err != nil {
			_ = ia.Close()
			w.Wrong("program %d: %v, as by\n%s", number, err, m.shorten(w, p, number, length))
			return nil
		}
	}
	if err := ia.CloseGraceful(); err != nil {
		w.Wrong("with everything freed: %v", err)
		return ia.Close()
	}
	return nil
}

// open opens an adapter.
func (m *Model) open(w *program.World) (*dat.IA, error) {
	if !m.Long {
		return w.Open("10.0.0.1")
	}
	return dat.Open(context.Background(), "loop", dat.WithProvider(fault.Wrap(loop.New(), fault.Config{Series: true})))
}

// play plays a program of so many commands, and frees what it has made. Each command has random numbers of its own, so
// that one can be left out and the others stay much as they were.
func (m *Model) play(w *program.World, p *trial, number, length int, without map[int]bool) error {
	for i := range length {
		if without[i] {
			continue
		}
		draw := rand.New(rand.NewPCG(w.Seed<<32|uint64(number), uint64(i)))
		if err := p.do(p.world.Next(func(_ string, n int) int { return draw.IntN(n) })); err != nil {
			return err
		}
	}
	return p.finish()
}

// shorten leaves out commands without which the program fails, too, for a minute at most, and returns the shortest as a
// script. Each try has an adapter of its own, which a failure leaves as it is.
func (m *Model) shorten(w *program.World, failed *trial, number, length int) *trial {
	without := make(map[int]bool)
	for i, began := length-1, time.Now(); i >= 0 && time.Since(began) < time.Minute; i-- {
		ia, err := m.open(w)
		if err != nil {
			return failed
		}
		without[i] = true
		p := begin(ia, m.Long, newCoverage())
		if m.play(w, p, number, length, without) != nil {
			failed = p
		} else {
			delete(without, i)
		}
		_ = ia.Close()
	}
	return failed
}
