package posts

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"godat/check/world/program"
)

// Name is that of the program.
const Name = "posts"

// Names are those of all programs of a world without a volume.
var Names = append(slices.Clone(program.Names), Name)

// Named returns a program by its name, for program.Main.
func Named(name string, size program.Size) (program.Program, error) {
	if name == Name {
		return seeded{size}, nil
	}
	return program.Named(name, size)
}

// Hosts are those of the two adapters, which must reach each other.
var Hosts = [...]string{"10.0.0.1", "10.0.0.2"}

// Posts is the program. The world's seed decides all choices, but on real processors not how its goroutines
// interleave.
type Posts struct {
	program.Size // as many pairs of endpoints post at the same time as it has clients, and each pauses between two lives

	// Ops is how many posts must be accepted before the run ends; the lives under
	// way then are lived to their end.
	Ops int64
	// Unreliable tells the books that the provider, or its network, breaks connections by itself.
	Unreliable bool
	// AbruptClose makes the run close both adapters abruptly under all links, once Ops
	// posts were accepted. Posts whose events come through a channel must complete
	// all the same; events in the queue of a dispatcher are lost with it.
	AbruptClose bool
	// Early tells the books that a send or write may succeed before it has arrived.
	Early bool
	// Patience is how long the run waits for something that must happen before it
	// complains; 0 means a minute.
	Patience time.Duration

	// Did is how often each thing happened, by its name, when the run has ended.
	Did map[string]int64
}

// Run runs the program. Nothing else may close the world's adapters.
func (p *Posts) Run(w *program.World) error {
	p.Patience = cmp.Or(p.Patience, time.Minute)
	r := &world{World: w, cfg: p}
	if r.open() {
		r.run()
	}
	r.close()
	p.Did = r.books.counts.of
	var text strings.Builder
	for _, what := range slices.Sorted(maps.Keys(p.Did)) {
		fmt.Fprintf(&text, ", %s %d", what, p.Did[what])
	}
	w.Step("books", "%d requests, %d receives%s", r.books.posted[requests].Load(), r.books.posted[receives].Load(), &text)
	return nil
}

// seeded is the program as a seed has it: with an abrupt close, with troubles that end connections, or with such as only
// hold them up, so that each failure must have its cause.
type seeded struct{ program.Size }

// Run runs the program while the script brings its troubles.
func (s seeded) Run(w *program.World) error {
	draw := w.Draw(mix(forSeed))
	s.Pause = 400 * time.Millisecond // so that the script's troubles find connections
	p := &Posts{Size: s.Size, Ops: 100 * int64(s.Rounds), Early: w.Network != nil, AbruptClose: draw.IntN(8) == 0}
	list := w.Script(s.Troubles, time.Duration(s.Rounds)*20*time.Millisecond, Hosts[:1], Hosts[1:], s.Without)
	resets := draw.IntN(2) == 0
	list = slices.DeleteFunc(list, func(t program.Trouble) bool {
		return w.Network == nil || t.Kind == "restart" || t.Kind == "reset" && !resets
	})
	p.Unreliable = slices.ContainsFunc(list, func(t program.Trouble) bool { return t.Kind == "reset" })
	ctx, stop := context.WithCancel(context.Background())
	var script sync.WaitGroup
	script.Go(func() { w.Play(ctx, list, nil) })
	err := p.Run(w)
	stop()
	script.Wait()
	return err
}

// The purposes of dice.
const (
	forLink uint64 = iota
	forLife
	forAccount
	forPoster
	forReceiver
	forSeed
)

// dice makes a source of choices for one purpose. The same seed and purpose give
// the same choices.
func (w *world) dice(purpose ...uint64) *rand.Rand { return w.Draw(mix(purpose...)) }

// mix hashes several numbers into one.
func mix(xs ...uint64) uint64 {
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, xs)
	return h.Sum64()
}
