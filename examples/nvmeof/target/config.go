package target

import (
	"cmp"
	"fmt"
	"log/slog"
	"math/bits"
	"time"

	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/store"
)

// Config says what a target serves. Zero values take the defaults.
type Config struct {
	Addr      string // host:port
	Subsystem string // its NVMe qualified name
	// Namespaces are the disks; the first one has the namespace id 1. The caller closes
	// their stores after Run has returned.
	Namespaces []Namespace
	// Hosts are the names of the hosts that may connect; none means all hosts. The names
	// are what hosts say, and prove nothing.
	Hosts []string

	Queues          int // I/O queues of a controller; default 8, at most 64
	Depth           int // entries of a queue; default 128
	Controllers     int // at a time; default 16
	HostControllers int // of one host at a time; default 4

	ConnectTime time.Duration // from a connection to its Connect command at most; default 10 s
	Log         *slog.Logger  // nil means no log
}

// Namespace is a disk. Its blocks are those that fit in the store.
type Namespace struct {
	Store     store.Store
	BlockSize int      // in bytes, 512 or 4096; default 4096
	ID        [16]byte // names the disk for ever, to all hosts
}

const (
	inCapsule   = nvme.PageLen                  // bytes of data that a capsule takes
	maxTransfer = 1 << transferPages * pageSize // bytes of data of a command
	pageSize    = 4096

	transferPages = 8 // as a power of two: MDTS

	mostQueues    = 64
	fewestEntries = 2
	mostEntries   = 1024
	adminEntries  = 32 // which a host may rely on
	asyncLimit    = 4  // Async Event Requests that a controller holds
)

// complete fills in the defaults and checks the rest.
func (cfg *Config) complete() error {
	cfg.Queues = cmp.Or(cfg.Queues, 8)
	cfg.Depth = cmp.Or(cfg.Depth, 128)
	cfg.Controllers = cmp.Or(cfg.Controllers, 16)
	cfg.HostControllers = cmp.Or(cfg.HostControllers, 4)
	cfg.ConnectTime = cmp.Or(cfg.ConnectTime, 10*time.Second)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	switch {
	case cfg.Queues < 1 || cfg.Queues > mostQueues:
		return fmt.Errorf("target: %d I/O queues; there may be 1 to %d", cfg.Queues, mostQueues)
	case cfg.Depth < adminEntries || cfg.Depth > mostEntries:
		return fmt.Errorf("target: queues of %d entries; they may have %d to %d", cfg.Depth, adminEntries, mostEntries)
	case cfg.Controllers < 1 || cfg.HostControllers < 1 || cfg.ConnectTime < 0:
		return fmt.Errorf("target: a limit is negative")
	case cfg.Subsystem == nvme.DiscoverySubsystem:
		return fmt.Errorf("target: %s is the name of the discovery subsystem", cfg.Subsystem)
	}
	for _, name := range append([]string{cfg.Subsystem}, cfg.Hosts...) {
		if err := nvme.CheckName(name); err != nil {
			return fmt.Errorf("target: %w", err)
		}
	}
	for i := range cfg.Namespaces {
		ns := &cfg.Namespaces[i]
		ns.BlockSize = cmp.Or(ns.BlockSize, 4096)
		if ns.BlockSize != 512 && ns.BlockSize != 4096 {
			return fmt.Errorf("target: blocks of %d bytes; they may have 512 or 4096", ns.BlockSize)
		}
		if len(ns.Store.Memory()) < ns.BlockSize {
			return fmt.Errorf("target: the store of namespace %d is smaller than a block", i+1)
		}
	}
	return nil
}

// namespace is a disk as queues see it. Immutable.
type namespace struct {
	store    store.Store
	memory   []byte
	volatile bool
	shift    uint8  // a block has 1<<shift bytes
	blocks   uint64 // how many
	page     nvme.Namespace
	worker   *worker
}

func newNamespace(ns Namespace, jobs int) *namespace {
	shift := uint8(bits.TrailingZeros(uint(ns.BlockSize)))
	memory := ns.Store.Memory()
	blocks := uint64(len(memory)) >> shift
	return &namespace{
		store: ns.Store, memory: memory[:blocks<<shift], volatile: ns.Store.Volatile(), shift: shift, blocks: blocks,
		page: nvme.Namespace{Blocks: blocks, BlockShift: shift, ID: ns.ID}, worker: newWorker(ns.Store, jobs),
	}
}

// span is a range of blocks as an offset and a length in bytes; ok is false for a range
// beyond the namespace.
func (ns *namespace) span(lba, blocks uint64) (off, n int, ok bool) {
	if blocks > ns.blocks || lba > ns.blocks-blocks {
		return 0, 0, false
	}
	return int(lba << ns.shift), int(blocks << ns.shift), true
}
