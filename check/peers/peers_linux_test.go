package peers

import (
	"cmp"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var (
	programsFlag = flag.Int("peers.programs", 0, "how many programs to play at least; 0: as many as take seconds")
	timeFlag     = flag.Duration("peers.time", 0, "how long to play programs at least")
	seedFlag     = flag.Uint64("peers.seed", 0, "the first program's seed; 0 picks one")
	sameFlag     = flag.Bool("peers.same", false, "play the program of the first seed again and again")
)

// built is the folder of the servers' programs. Workers of go test -fuzz find it in the
// environment.
var built = os.Getenv(builtEnv)

const builtEnv = "GODAT_PEERS_BUILT"

func TestMain(m *testing.M) {
	worker := built != ""
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent(), goleak.Cleanup(func(code int) {
		if !worker && built != "" {
			_ = os.RemoveAll(built)
		}
		os.Exit(code)
	}))
}

// buildOnce builds the servers, unless that is done.
func buildOnce(tb testing.TB) {
	if built == "" {
		dir, err := os.MkdirTemp("", "peers")
		require.NoError(tb, err)
		built = dir
		require.NoError(tb, os.Setenv(builtEnv, dir))
		require.NoError(tb, build(dir))
	}
}

// arena has the servers that programs have been played against, one of each kind at most.
type arena struct {
	tb      testing.TB
	running [len(servers)]*server
}

func newArena(tb testing.TB) *arena {
	buildOnce(tb)
	a := &arena{tb: tb}
	tb.Cleanup(a.close)
	return a
}

// close ends the servers in order.
func (a *arena) close() {
	for _, s := range a.running {
		if s != nil && s.alive() == nil {
			require.NoError(a.tb, s.stop(), "%s, at its end", s.kind.name)
		}
	}
}

// server is the running server of a kind. The arena is that of another test than t, if t is an
// input of a fuzz target.
func (a *arena) server(t testing.TB, kind int) *server {
	if a.running[kind] == nil {
		store, err := os.MkdirTemp(built, servers[kind].name)
		require.NoError(t, err)
		s, err := start(&servers[kind], built, store)
		require.NoError(t, err)
		a.running[kind] = s
		require.NoError(t, s.settle(t.Context()))
	}
	return a.running[kind]
}

// hang is how long a program may take.
const hang = 2 * time.Minute

// try plays a program, and judges the server. A server that failed is not used again.
func (a *arena) try(t testing.TB, b []byte) error {
	p := parse(b)
	s := a.server(t, p.server)
	hangs := time.AfterFunc(hang, func() {
		debug.SetTraceback("all")
		panic(fmt.Sprintf("the peers hang:\n%v\n%s", p, hex.EncodeToString(b)))
	})
	defer hangs.Stop()
	wrong := p.play(t.Context(), s.addr)
	if err := errors.Join(wrong, s.judge(t.Context())); err != nil {
		a.running[p.server] = nil
		return fmt.Errorf("%w\n%v\n%s", err, p, hex.EncodeToString(b))
	}
	return nil
}

// TestNoProgramOfPeersHarmsAServer plays programs of one seed after the other.
func TestNoProgramOfPeersHarmsAServer(t *testing.T) {
	first := *seedFlag
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	programs := cmp.Or(*programsFlag, 20)
	if testing.Short() {
		programs = cmp.Or(*programsFlag, 5)
	}
	a := newArena(t)
	var n, failures int
	for began := time.Now(); n < programs || time.Since(began) < *timeFlag; n++ {
		seed := first + uint64(n)
		if *sameFlag {
			seed = first
		}
		if err := a.try(t, bytesOf(seed)); err != nil {
			t.Errorf("-peers.seed=%d -peers.same: %v", seed, err)
			if failures++; failures == 5 {
				break
			}
		}
	}
	t.Logf("%d programs from -peers.seed=%d on", n, first)
}

// FuzzPeers takes its bytes for a program of peers. Those of the seeds write immediate data to each
// server, and close connections under its handlers.
func FuzzPeers(f *testing.F) {
	for _, seed := range []uint64{1, 9, 10, 15, 25, 29, 201, 203, 306} {
		f.Add(bytesOf(seed))
	}
	a := newArena(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		require.NoError(t, a.try(t, b))
	})
}
