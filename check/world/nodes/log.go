package nodes

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
)

// errCut is what a log says behind a power cut.
var errCut = errors.New("the power was cut")

// file is a raftlog.Medium in memory: what a call returned nil for is stable, and a power cut leaves what was on its
// way in part.
type file struct {
	mu     sync.Mutex
	all    []raft.Log // of ascending indexes, without gaps
	coming []*raft.Log
	values map[string][]byte
	slow   time.Duration // of each write
	full   bool
	cut    bool
}

func newFile() *file { return &file{values: make(map[string][]byte)} }

// after is the file behind a power cut: of records that were on their way a part is there.
func (f *file) after(draw *rand.Rand) *file {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = true
	next := f.stable()
	for _, r := range f.coming[:draw.IntN(len(f.coming)+1)] {
		next.all = append(next.all, *r)
	}
	return next
}

// copied is what is stable of the file.
func (f *file) copied() *file {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stable()
}

func (f *file) stable() *file {
	next := newFile()
	next.all = slices.Clone(f.all)
	for key, value := range f.values {
		next.values[key] = slices.Clone(value)
	}
	return next
}

// set changes what the file suffers.
func (f *file) set(slow time.Duration, full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.slow, f.full = slow, full
}

// flip flips a bit of a record, and says of which.
func (f *file) flip(draw *rand.Rand) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) == 0 {
		return "no record"
	}
	r := &f.all[draw.IntN(len(f.all))]
	if len(r.Data) == 0 {
		return fmt.Sprintf("nothing of record %d, which is empty", r.Index)
	}
	r.Data = slices.Clone(r.Data) // others may have read it
	at := draw.IntN(len(r.Data))
	r.Data[at] ^= 1 << draw.IntN(8)
	return fmt.Sprintf("byte %d of %d of record %d", at, len(r.Data), r.Index)
}

// sync is the wait of a write. The caller holds mu, which sync gives back meanwhile.
func (f *file) sync() error {
	if slow := f.slow; slow > 0 {
		f.mu.Unlock()
		time.Sleep(slow)
		f.mu.Lock()
	}
	switch {
	case f.cut:
		return errCut
	case f.full:
		return syscall.ENOSPC
	}
	return nil
}

// FirstIndex implements raftlog.Medium.
func (f *file) FirstIndex() (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) == 0 {
		return 0, nil
	}
	return f.all[0].Index, nil
}

// LastIndex implements raftlog.Medium.
func (f *file) LastIndex() (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last(), nil
}

func (f *file) last() uint64 {
	if len(f.all) == 0 {
		return 0
	}
	return f.all[len(f.all)-1].Index
}

// GetLog implements raftlog.Medium.
func (f *file) GetLog(index uint64, r *raft.Log) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) == 0 || index < f.all[0].Index || index > f.last() {
		return raft.ErrLogNotFound
	}
	*r = f.all[index-f.all[0].Index]
	return nil
}

// StoreLogs implements raftlog.Medium.
func (f *file) StoreLogs(all []*raft.Log) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, r := range all {
		if last := f.last(); last != 0 && r.Index != last+1+uint64(i) {
			return fmt.Errorf("record %d does not follow %d", r.Index, last+uint64(i))
		}
	}
	f.coming = all
	err := f.sync()
	f.coming = nil
	for _, r := range all {
		if err == nil {
			kept := *r
			kept.Data = slices.Clone(r.Data)
			f.all = append(f.all, kept)
		}
	}
	return err
}

// DeleteRange implements raftlog.Medium.
func (f *file) DeleteRange(first, last uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.sync(); err != nil {
		return err
	}
	f.all = slices.DeleteFunc(f.all, func(r raft.Log) bool { return r.Index >= first && r.Index <= last })
	return nil
}

// Get implements raftlog.Medium.
func (f *file) Get(key []byte) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.values[string(key)]), nil
}

// Set implements raftlog.Medium.
func (f *file) Set(key, value []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.sync()
	if err == nil {
		f.values[string(key)] = slices.Clone(value)
	}
	return err
}

// Close implements raftlog.Medium.
func (f *file) Close() error { return nil }
