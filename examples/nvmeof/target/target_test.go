package target

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/store"
	dat "godat/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

const (
	subsystem = "nqn.2026-01.test:disk"
	diskSize  = 4 << 20
)

// fixture is a target with a disk of 4096-byte blocks and one of 512-byte blocks.
type fixture struct {
	*testing.T
	ia     *dat.IA
	target *Target
	stores []*store.Forgetful
	admin  *dat.Conn    // of startSlow
	stop   func() error // ends the target in order
}

// start serves until the test ends. change changes the configuration.
func start(t *testing.T, provider string, change func(*Config)) *fixture {
	t.Helper()
	ia, err := dat.Open(t.Context(), provider)
	require.NoError(t, err)
	f := &fixture{T: t, ia: ia}
	cfg := Config{Subsystem: subsystem, Queues: 2, Depth: 32, Log: slog.New(slog.NewTextHandler(writer{t}, nil))}
	if provider != "loop" {
		cfg.Addr = "127.0.0.1:0"
	}
	for i, block := range []int{4096, 512} {
		s, err := store.NewForgetful(diskSize)
		require.NoError(t, err)
		f.stores = append(f.stores, s)
		cfg.Namespaces = append(cfg.Namespaces, Namespace{Store: s, BlockSize: block, ID: [16]byte{15: byte(i + 1)}})
	}
	if change != nil {
		change(&cfg)
	}
	f.target, err = New(t.Context(), ia, cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- f.target.Run(ctx) }()
	f.stop = sync.OnceValue(func() error {
		cancel()
		return <-ran
	})
	t.Cleanup(func() {
		require.NoError(t, f.stop())
		require.NoError(t, ia.CloseGraceful(), "something is left")
		for _, s := range f.stores {
			require.NoError(t, s.Close())
		}
	})
	return f
}

// writer logs to a test.
type writer struct{ t *testing.T }

func (w writer) Write(b []byte) (int, error) {
	w.t.Log(string(bytes.TrimSpace(b)))
	return len(b), nil
}

func (f *fixture) config() host.Config {
	return host.Config{Addr: f.target.Addr(), Subsystem: subsystem, Queues: 2, ID: [16]byte{1}}
}

// connect connects a host until the test ends.
func (f *fixture) connect(change func(*host.Config)) *host.Controller {
	f.Helper()
	cfg := f.config()
	if change != nil {
		change(&cfg)
	}
	c, err := host.Connect(f.within(), f.ia, cfg)
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, c.Close()) })
	return c
}

func (f *fixture) within() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	f.Cleanup(cancel)
	return ctx
}

func (f *fixture) disk(c *host.Controller, nsid uint32) *host.Disk {
	f.Helper()
	d, err := c.Disk(f.within(), nsid)
	require.NoError(f, err)
	return d
}

// onEach runs a test on each provider.
func onEach(t *testing.T, test func(f *fixture)) {
	for _, provider := range []string{"loop", "iwarp"} {
		t.Run(provider, func(t *testing.T) { test(start(t, provider, nil)) })
	}
}

// noise is n random bytes.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return b
}

func TestAHostReadsBackWhatItWrote(t *testing.T) {
	onEach(t, func(f *fixture) {
		c := f.connect(func(cfg *host.Config) { cfg.Transfer = 1 << 20 })
		assert.Equal(f, 2, c.Queues())
		for nsid, block := range map[uint32]int{1: 4096, 2: 512} {
			d := f.disk(c, nsid)
			assert.EqualValues(f, diskSize, d.Size())
			assert.Equal(f, block, d.BlockSize())
			assert.Equal(f, byte(nsid), d.About().ID[15])
			for _, n := range []int{block, 2 * block, 4096, 8192, 128 << 10, 1 << 20, 1<<20 + block} {
				want, got := noise(n), make([]byte, n)
				_, err := d.WriteAt(want, int64(block))
				require.NoError(f, err)
				_, err = d.ReadAt(got, int64(block))
				require.NoError(f, err)
				assert.True(f, bytes.Equal(want, got), "%d bytes", n)
				require.NoError(f, d.Compare(want, int64(block)))
				want[n-1]++
				require.ErrorIs(f, d.Compare(want, int64(block)), nvme.StatusError(nvme.CompareFailure))
			}
			n, err := d.ReadAt(make([]byte, 3*block), diskSize-int64(2*block))
			require.ErrorIs(f, err, io.EOF)
			assert.Equal(f, 2*block, n)
		}
		counters := f.target.Stats().Counters
		assert.EqualValues(f, 3, counters.Queues)
		assert.NotZero(f, counters.Reads)
		assert.Greater(f, counters.BytesWritten, uint64(2<<20))
	})
}

func TestZeroedAndDeallocatedBlocksReadAsZeros(t *testing.T) {
	onEach(t, func(f *fixture) {
		c := f.connect(nil)
		d := f.disk(c, 1)
		want := noise(64 << 10)
		_, err := d.WriteAt(want, 0)
		require.NoError(f, err)
		require.NoError(f, d.WriteZeroes(f.within(), 4096, 8192, false))
		require.NoError(f, d.WriteZeroes(f.within(), 16384, 4096, true))
		require.NoError(f, d.Deallocate(f.within(), nvme.Range{LBA: 8, Blocks: 2}, nvme.Range{LBA: 12, Blocks: 1}, nvme.Range{LBA: 1}))
		clear(want[4096:12288])
		clear(want[16384:20480])
		clear(want[32768:40960])
		clear(want[49152:53248])
		got := make([]byte, len(want))
		_, err = d.ReadAt(got, 0)
		require.NoError(f, err)
		assert.True(f, bytes.Equal(want, got))
		beyond := nvme.Range{LBA: diskSize / 4096, Blocks: 1}
		require.ErrorIs(f, d.Deallocate(f.within(), nvme.Range{LBA: 0, Blocks: 1}, beyond), nvme.StatusError(nvme.LBAOutOfRange))
		require.ErrorIs(f, d.WriteZeroes(f.within(), diskSize, 4096, true), nvme.StatusError(nvme.LBAOutOfRange))
	})
}

func TestWhatIsFlushedOrForcedSurvivesAPowerFailure(t *testing.T) {
	onEach(t, func(f *fixture) {
		d := f.disk(f.connect(nil), 1)
		want := noise(256 << 10)
		_, err := d.WriteAt(want[:128<<10], 0)
		require.NoError(f, err)
		require.NoError(f, d.Flush(f.within()))
		_, err = d.WriteStable(want[128<<10:], 128<<10)
		require.NoError(f, err)
		_, err = d.WriteAt(noise(512<<10), 1<<20)
		require.NoError(f, err)
		assert.NotZero(f, f.stores[0].Fail(rand.New(rand.NewPCG(1, 1))), "the last write is partly lost")
		got := make([]byte, len(want))
		_, err = d.ReadAt(got, 0)
		require.NoError(f, err)
		assert.True(f, bytes.Equal(want, got))
	})
}

func TestManyHostsWriteAndReadAtOnce(t *testing.T) {
	onEach(t, func(f *fixture) {
		const hosts, writers, rounds, part = 2, 6, 8, 64 << 10
		var wg sync.WaitGroup
		for h := range hosts {
			d := f.disk(f.connect(func(cfg *host.Config) { cfg.ID[0], cfg.Depth = byte(h+1), 4 }), uint32(h+1))
			for w := range writers {
				wg.Go(func() {
					want, got := noise(part+w), make([]byte, part)
					for range rounds {
						_, err := d.WriteAt(want[:part], int64(w*part))
						assert.NoError(f, err)
						_, err = d.ReadAt(got, int64(w*part))
						assert.NoError(f, err)
						assert.True(f, bytes.Equal(want[:part], got))
					}
				})
			}
		}
		wg.Wait()
	})
}

func TestOverlappingReadsAndWritesBreakNothing(t *testing.T) {
	onEach(t, func(f *fixture) {
		c := f.connect(func(cfg *host.Config) { cfg.Depth = 8 })
		d := f.disk(c, 1)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				b := noise(64 << 10)
				for range 10 {
					var err error
					if i%2 == 0 {
						_, err = d.WriteAt(b, int64(i*4096))
					} else {
						_, err = d.ReadAt(b, 0)
					}
					assert.NoError(f, err)
				}
			})
		}
		wg.Wait()
	})
}

func TestAHostDiscoversTheSubsystem(t *testing.T) {
	onEach(t, func(f *fixture) {
		c := f.connect(func(cfg *host.Config) { cfg.Subsystem = "" })
		assert.Equal(f, nvme.ControllerDiscovery, c.Identity().Type)
		ways, err := c.Discover(f.within())
		require.NoError(f, err)
		require.Len(f, ways, 1)
		assert.Equal(f, subsystem, ways[0].Subsystem)
		if f.target.Addr() != "" && ways[0].Service != "" {
			assert.Contains(f, f.target.Addr(), ways[0].Service)
		}
		_, err = c.Disk(f.within(), 1)
		require.ErrorIs(f, err, nvme.StatusError(nvme.InvalidNamespace))
	})
}

func TestAFileHasWhatAHostWrote(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("capability: mapped files")
	}
	s, err := store.OpenFile(filepath.Join(t.TempDir(), "disk"), diskSize)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	f := start(t, "iwarp", func(cfg *Config) { cfg.Namespaces = []Namespace{{Store: s}} })
	d := f.disk(f.connect(nil), 1)
	want := noise(diskSize / 2)
	_, err = d.WriteAt(want, 4096)
	require.NoError(t, err)
	require.NoError(t, d.WriteZeroes(f.within(), 0, 8192, true))
	require.NoError(t, d.Flush(f.within()))
	assert.True(t, bytes.Equal(want[4096:], s.Memory()[8192:][:len(want)-4096]))
	assert.Zero(t, s.Memory()[4096])
}
