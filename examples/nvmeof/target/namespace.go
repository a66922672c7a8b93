package target

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/store"
)

// Namespace is a disk. Its blocks are those that fit in the store.
type Namespace struct {
	Store     store.Store
	BlockSize int // in bytes, 512 or 4096; default 4096
	// ID names the disk for ever, to all hosts: they take disks of one ID for one disk. The
	// default is a new one.
	ID identity.ID
	// ANAGroup is the id of its ANA group, 1 to 128; default 1. Target.SetANAState changes the
	// state of all namespaces of a group together.
	ANAGroup uint32
}

// complete fills in the defaults and checks the rest.
func (ns *Namespace) complete() error {
	ns.BlockSize = cmp.Or(ns.BlockSize, 4096)
	ns.ANAGroup = cmp.Or(ns.ANAGroup, 1)
	if ns.ID == (identity.ID{}) {
		ns.ID = identity.New()
	}
	if ns.BlockSize != 512 && ns.BlockSize != 4096 {
		return fmt.Errorf("blocks of %d bytes; they may have 512 or 4096", ns.BlockSize)
	}
	if ns.ANAGroup > mostGroups {
		return fmt.Errorf("ANA group %d; there may be 1 to %d", ns.ANAGroup, mostGroups)
	}
	if len(ns.Store.Memory()) < ns.BlockSize {
		return errors.New("its store is smaller than a block")
	}
	return nil
}

// namespace is a disk as queues see it.
type namespace struct {
	// Immutable.
	memory   []byte
	volatile bool
	shift    uint8  // a block has 1<<shift bytes
	blocks   uint64 // how many
	page     nvme.Namespace
	group    *group
	worker   *worker
	prober   store.Prober // nil if no access to the memory fails
	writer   Writer       // nil if the data of Writes comes to the memory
	annexed  Annexed      // the same, if it has an annex
	reader   Reader       // nil if the memory may be read at any time
	copier   Copier       // nil if Reads get the memory as it is

	users int // the table, and the queues that have it; guarded by the table
}

func (g *groups) newNamespace(ns Namespace) *namespace {
	shift := uint8(bits.TrailingZeros(uint(ns.BlockSize)))
	memory := ns.Store.Memory()
	blocks := uint64(len(memory)) >> shift
	prober, _ := ns.Store.(store.Prober)
	writer, _ := ns.Store.(Writer)
	annexed, _ := ns.Store.(Annexed)
	reader, _ := ns.Store.(Reader)
	copier, _ := ns.Store.(Copier)
	return &namespace{
		prober: prober, writer: writer, annexed: annexed, reader: reader, copier: copier,
		memory: memory[:blocks<<shift], volatile: ns.Store.Volatile(), shift: shift, blocks: blocks,
		page: nvme.Namespace{Blocks: blocks, BlockShift: shift, ID: ns.ID, ANAGroup: ns.ANAGroup}, group: g.at(ns.ANAGroup), worker: newWorker(ns.Store), users: 1,
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

// ErrStopped is the error of calls on a target whose Run has returned.
var ErrStopped = errors.New("target: it has stopped")

// mostNamespaces is the highest id of a namespace, and how many a log of changed ones
// can name.
const mostNamespaces = 1024

// table has the namespaces of a target. Its methods may be called from any goroutine.
type table struct {
	list    atomic.Pointer[[]*namespace] // by id, from 1, nil where no disk is; replaced as a whole
	workers sync.WaitGroup               // running workers

	mu      sync.Mutex // held by changes
	closed  bool
	started []*worker // all that ever ran
}

// init puts the first namespaces into the table.
func (t *table) init(all []Namespace, g *groups) {
	t.list.Store(new([]*namespace))
	for i, ns := range all {
		_ = t.set(uint32(i+1), g.newNamespace(ns)) // the table is not closed, and the IDs differ
	}
}

// at is the namespace with an id, or nil.
func (t *table) at(nsid uint32) *namespace {
	list := *t.list.Load()
	if nsid == 0 || uint64(nsid) > uint64(len(list)) {
		return nil
	}
	return list[nsid-1]
}

// acquire is at for a queue that will use the namespace until it calls release.
func (t *table) acquire(nsid uint32) *namespace {
	t.mu.Lock()
	defer t.mu.Unlock()
	ns := t.at(nsid)
	if ns != nil {
		ns.users++
	}
	return ns
}

// release ends a use of a namespace. The last one ends its worker, which closes the
// store.
func (t *table) release(ns *namespace) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ns.users--; ns.users == 0 {
		ns.worker.close()
	}
}

// stats are the namespaces of the table.
func (t *table) stats() (all []DiskStats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, ns := range *t.list.Load() {
		if ns != nil {
			all = append(all, DiskStats{
				Number: uint32(i + 1), ID: identity.ID(ns.page.ID), Bytes: uint64(len(ns.memory)), BlockSize: 1 << ns.shift,
				State: nvme.ANAState(ns.group.state.Load()), Queues: ns.users - 1,
			})
		}
	}
	return all
}

// set puts a namespace into the table, or with nil takes away the one that is there.
func (t *table) set(nsid uint32, ns *namespace) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrStopped
	}
	list := slices.Clone(*t.list.Load())
	for i, other := range list {
		if ns != nil && other != nil && i+1 != int(nsid) && other.page.ID == ns.page.ID {
			return fmt.Errorf("target: namespace %d has the ID %v already: hosts would take both for one disk", i+1, identity.ID(ns.page.ID))
		}
	}
	for len(list) < int(nsid) {
		list = append(list, nil)
	}
	old := list[nsid-1]
	list[nsid-1] = ns
	t.list.Store(&list)
	if ns != nil {
		t.started = append(t.started, ns.worker)
		t.workers.Go(ns.worker.run)
	}
	if old != nil {
		if old.users--; old.users == 0 {
			old.worker.close()
		}
	}
	return nil
}

// close takes all namespaces away and waits for the end of their stores. No queue runs
// any more.
func (t *table) close() error {
	t.mu.Lock()
	t.closed = true
	for _, ns := range *t.list.Load() {
		if ns != nil {
			ns.worker.close()
		}
	}
	t.mu.Unlock()
	t.workers.Wait()
	var errs []error
	for _, w := range t.started {
		errs = append(errs, w.err)
	}
	return errors.Join(errs...)
}

// Set serves a disk as the namespace with an id, 1 to 1024, from now on: one that was not
// there, or in place of the one that was. A disk in place of a smaller or larger one keeps
// its ID and BlockSize, and hosts see it grow or shrink. Hosts that asked for it get an
// event. When Set has failed, the store is still the caller's. Commands that are under way
// on the former disk end there. The target closes the former disk's store when the last
// connection that has its memory registered has ended.
func (t *Target) Set(nsid uint32, ns Namespace) error {
	err := checkID(nsid)
	if err == nil {
		err = ns.complete()
	}
	if err != nil {
		return fmt.Errorf("target: namespace %d: %w", nsid, err)
	}
	return t.change(nsid, t.groups.newNamespace(ns))
}

// Remove takes a disk from the hosts. Set says what becomes of commands, hosts, and the
// store. To remove a disk that is not there is no error.
func (t *Target) Remove(nsid uint32) error {
	if err := checkID(nsid); err != nil {
		return fmt.Errorf("target: namespace %d: %w", nsid, err)
	}
	if t.namespaces.at(nsid) == nil {
		return nil
	}
	return t.change(nsid, nil)
}

// change changes the table, and tells the hosts.
func (t *Target) change(nsid uint32, ns *namespace) error {
	moved, err := t.replace(nsid, ns)
	if err != nil {
		return err
	}
	t.log.Info("namespace changed", "namespace", nsid, "removed", ns == nil)
	t.controllers.changed(nsid)
	if moved {
		t.controllers.groupsChanged()
	}
	return nil
}

// replace changes the table, and with it the ANA log page. It reports whether a disk has gone
// to another group.
func (t *Target) replace(nsid uint32, ns *namespace) (moved bool, err error) {
	t.groups.mu.Lock()
	defer t.groups.mu.Unlock()
	old := t.namespaces.at(nsid)
	if err := t.namespaces.set(nsid, ns); err != nil {
		return false, err
	}
	for _, changed := range []*namespace{old, ns} {
		if changed != nil {
			t.groups.note(changed.page.ANAGroup)
		}
	}
	return old != nil && ns != nil && old.group != ns.group, nil
}

func checkID(nsid uint32) error {
	if nsid < 1 || nsid > mostNamespaces {
		return fmt.Errorf("the id may be 1 to %d", mostNamespaces)
	}
	return nil
}
