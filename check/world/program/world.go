// Package program has what runs in the seeded world: servers and clients as users write them, the troubles
// that a script brings them, and judges that know nothing of the library but its documents.
package program

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"godat/check/world/network"
	"godat/hw"
	"godat/hw/iwarp"
	"godat/hw/sim"
	"godat/mem"
	dat "godat/runtime"
)

// World is one run of a program.
type World struct {
	Seed    uint64
	Network *network.Network // nil unless over iwarp

	mu       sync.Mutex
	began    time.Time
	hash     uint64
	steps    int
	recent   []string // the last steps
	aloud    io.Writer
	wrongs   []string
	brought  map[string]int // troubles, by kind
	adapter  func(host string) (*dat.IA, error)
	breaches func() []string // of the devices' contract, by the library; nil where nobody notes them
	open     []*dat.IA
	troubled map[[2]string]bool // ways, of a client's host and a server's, that have had troubles; "" stands for all clients
}

// kept is how many steps a failure tells.
const kept = 100

// worlds counts those of the process: each has providers of its own names.
var worlds atomic.Int64

// Over makes a world whose hosts have the adapters that open opens. Steps are written to aloud, unless it is nil.
func Over(seed uint64, open func(host string) (*dat.IA, error), aloud io.Writer) *World {
	return &World{Seed: seed, began: time.Now(), aloud: aloud, adapter: open, troubled: make(map[[2]string]bool), brought: make(map[string]int)}
}

// New makes a world over a provider: "loop", "iwarp", or "sim", whose devices must be polled.
func New(seed uint64, provider string, aloud io.Writer) (*World, error) {
	w := Over(seed, nil, aloud)
	switch provider {
	case "loop":
		w.adapter = func(string) (*dat.IA, error) { return dat.Open(context.Background(), "loop") }
	case "iwarp":
		w.Network = network.New(seed, network.Config{Latency: 100 * time.Microsecond, Jitter: time.Millisecond, Room: 32 << 10, Piece: 8 << 10})
		number := worlds.Add(1)
		w.adapter = func(host string) (*dat.IA, error) {
			h, name := w.Network.Host(host), fmt.Sprintf("world-%d-%s", number, host)
			hw.MustRegister(iwarp.New(iwarp.Config{Name: name, Dial: h.Dial, Listen: h.Listen, Address: host}))
			return dat.Open(context.Background(), name)
		}
	case "sim":
		devices, draw := sim.New(sim.Config{Seed: seed}), w.Draw(1100)
		w.breaches = devices.Violations
		w.adapter = func(host string) (*dat.IA, error) {
			var by dat.PollerConfig
			if draw.IntN(3) == 0 {
				by.CPUs = []int{0}
				w.Step(host, "a thread polls the device")
			}
			return dat.Open(context.Background(), "sim:"+host, dat.WithProvider(devices), dat.WithPoller(by))
		}
	default:
		return nil, fmt.Errorf("no provider %q: loop, iwarp or sim", provider)
	}
	return w, nil
}

// Open opens an adapter of a host. The world closes it.
func (w *World) Open(host string) (*dat.IA, error) {
	ia, err := w.adapter(host)
	if err == nil {
		w.open = append(w.open, ia)
	}
	return ia, err
}

// Listens is where a server of a host listens: any port.
func (w *World) Listens(host string) string {
	if w.Network == nil {
		return ""
	}
	return net.JoinHostPort(host, "0")
}

// Draw is a source of random numbers for one party. It is its own alone, so that what one party draws
// changes nothing for the others.
func (w *World) Draw(party uint64) *rand.Rand { return rand.New(rand.NewPCG(w.Seed, party)) }

// Step notes what a party saw.
func (w *World) Step(who, format string, args ...any) {
	text := who + ": " + fmt.Sprintf(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps++
	h := fnv.New64a()
	fmt.Fprintf(h, "%x %s", w.hash, text)
	w.hash = h.Sum64()
	line := fmt.Sprintf("%6d %13v %s", w.steps, time.Since(w.began).Round(time.Microsecond), text)
	if w.aloud != nil {
		fmt.Fprintln(w.aloud, line)
	}
	if w.recent = append(w.recent, line); len(w.recent) > 2*kept {
		w.recent = append([]string(nil), w.recent[kept:]...)
	}
}

// Trouble notes that a trouble of a kind is brought about.
func (w *World) Trouble(kind, format string, args ...any) {
	w.Step("script", "%s: %s", kind, fmt.Sprintf(format, args...))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.brought[kind]++
}

// troubles are those that were brought about, as text. The caller holds mu.
func (w *World) troubles() string {
	text := ""
	for _, kind := range slices.Sorted(maps.Keys(w.brought)) {
		text += fmt.Sprintf("%d %s, ", w.brought[kind], kind)
	}
	return text
}

// Steps is how many there were.
func (w *World) Steps() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.steps
}

// Disturbed reports whether the way between a client's host and a server's has had troubles: a connection may
// have ended by them.
func (w *World) Disturbed(client, server string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.troubled[[2]string{client, server}]
}

// Restarted reports whether a server was started anew.
func (w *World) Restarted(server string) bool { return w.Disturbed("", server) }

// disturb says that the way between two hosts has troubles from now on.
func (w *World) disturb(client, server string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.troubled[[2]string{client, server}] = true
}

// Wrong notes what must not be. The world goes on: what follows may explain it.
func (w *World) Wrong(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.Step("judge", "%s", text)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrongs = append(w.wrongs, text)
}

// End closes the adapters that the program has not closed, and says whether all was right: a line that is the same for the same history,
// or an error with what was wrong and the steps before it.
func (w *World) End() (history string, err error) {
	for _, ia := range w.open {
		err := ia.CloseGraceful() // which fails while anything is left
		if err != nil && !errors.Is(err, hw.ErrInvalidHandle) {
			w.Wrong("something is left on %v: %v", ia, err)
			_ = ia.Close()
		}
		if s := ia.MemoryStats(); s != (mem.Stats{}) {
			w.Wrong("an adapter that is closed has memory: %+v", s)
		}
	}
	if w.breaches != nil {
		for _, breach := range w.breaches() {
			w.Wrong("a device was used against its contract: %s", breach)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	history = fmt.Sprintf("%d steps in %v, %s%016x", w.steps, time.Since(w.began).Round(time.Millisecond), w.troubles(), w.hash)
	if len(w.wrongs) == 0 {
		return history, nil
	}
	return history, fmt.Errorf("%s\nthe last steps:\n%s", strings.Join(w.wrongs, "\n"), strings.Join(w.recent[max(0, len(w.recent)-kept):], "\n"))
}
