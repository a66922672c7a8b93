// Package raftlog keeps for good what a replica's engine must not forget: the records of its log,
// its term and vote, and the members. The records are in memory, too, so that nobody waits for a disk
// to read them.
package raftlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/types"

	"godat/examples/nvmeof/identity"
	"godat/examples/volume/replica"
)

// Members are the nodes of a volume, by id.
type Members map[uint64]Member

// Member is a node of a volume.
type Member struct {
	Addr    string `json:"addr"` // at which other nodes reach it
	Learner bool   `json:"learner,omitempty"`
}

// Vote is the term of a node, and for whom it has voted in it.
type Vote struct{ Term, For uint64 }

// Log implements replica.Log. Its methods may be called from any goroutine; one at a time changes the
// records.
type Log struct {
	// Immutable.
	wal    Medium
	volume identity.ID

	mu      sync.Mutex // held for moments, and not while the disk is written
	before  uint64     // the index before the first
	term    uint64     // of that record
	records []replica.Record
	floor   uint64 // records up to this one are not offered to others
	vote    Vote
	members Members
	gone    []uint64 // that were members once
	known   map[uint64]Known
}

// The keys of what is not a record.
var (
	keyFormat  = []byte("format") // and the volume
	keyBefore  = []byte("before")
	keyBegins  = []byte("begins") // before, with a CRC
	keyVote    = []byte("vote")
	keyMembers = []byte("members")
	keyGone    = []byte("gone")
	keyKnown   = []byte("known")
)

// Medium is where a log is kept, such as a write-ahead log of raft-wal. What StoreLogs, DeleteRange and Set have returned
// nil for is there after a power failure. One call at a time changes it.
type Medium interface {
	FirstIndex() (uint64, error) // 0 if it is empty
	LastIndex() (uint64, error)
	GetLog(index uint64, r *raft.Log) error
	StoreLogs(all []*raft.Log) error
	DeleteRange(first, last uint64) error // at its beginning or its end
	Get(key []byte) ([]byte, error)       // nil if it was not set
	Set(key, value []byte) error
	Close() error
}

// Config says how a log is kept. Zero values take the defaults.
type Config struct {
	Medium  Medium    // default a write-ahead log in the directory; Files and Segment mean nothing beside it
	Files   types.VFS // default the system's
	Segment int       // length of a file of records; default Segment
	Volume  identity.ID
	Made    bool // the log is there: one that has lost what it was is refused
}

// Segment is the length of a file of records. A log whose records are released in time has two: the one that it appends to, and the one before.
const Segment = 64 << 20

// format is what a log's files are written in. One of before had no volume.
const format = 2

// ErrLost is the error of a log some of whose files are gone, or of another volume.
var ErrLost = errors.New("the node's log has lost files, and with them what the node has acknowledged and how it has voted: " +
	"remove the node from the volume, and add one of another id")

// Open opens the log in a directory, which exists.
func Open(dir string, cfg Config) (*Log, error) {
	if cfg.Medium == nil {
		wal, err := openWAL(dir, cfg)
		if err != nil {
			return nil, fmt.Errorf("raftlog: %w", err)
		}
		cfg.Medium = wal
	}
	l := &Log{wal: cfg.Medium, volume: cfg.Volume}
	err := l.identify(cfg.Made)
	if err == nil {
		err = l.load()
	}
	if err != nil {
		return nil, fmt.Errorf("raftlog: %w", errors.Join(err, cfg.Medium.Close()))
	}
	return l, nil
}

// identify makes a new log one of the volume, and refuses one of another.
func (l *Log) identify(made bool) error {
	b, err := l.get(keyFormat)
	if err != nil {
		return err
	}
	want := append([]byte{format}, l.volume[:]...)
	switch {
	case len(b) == 0 && made:
		return fmt.Errorf("wal-meta.db: %w", ErrLost)
	case len(b) == 0:
		return l.wal.Set(keyFormat, want)
	case b[0] != format || len(b) != len(want):
		return fmt.Errorf("it is of format %d, and this program knows %d", b[0], format)
	case !bytes.Equal(b, want):
		return fmt.Errorf("it is of volume %v, not of %v", identity.ID(b[1:]), l.volume)
	}
	return nil
}

// load reads all. It ends a Begin that a crash has interrupted.
func (l *Log) load() (err error) {
	if err = l.loadBefore(); err != nil {
		return err
	}
	if err = l.loadVote(); err != nil {
		return err
	}
	if err = l.loadMembers(); err != nil {
		return err
	}
	if err = l.getSealed(keyGone, &l.gone); err != nil {
		return err
	}
	if err = l.getSealed(keyKnown, &l.known); err != nil {
		return err
	}
	first, last, err := l.inFile()
	if err != nil {
		return err
	}
	if last != 0 && first <= l.before {
		if err := l.trim(first, last); err != nil {
			return err
		}
		if first, last, err = l.inFile(); err != nil {
			return err
		}
	}
	if last != 0 && first != l.before+1 {
		return fmt.Errorf("the first record is %d, and not %d", first, l.before+1)
	}
	for index := first; last != 0 && index <= last; index++ {
		r, err := l.read(index)
		if err != nil {
			return err
		}
		l.records = append(l.records, r)
	}
	l.floor = l.before
	return nil
}

// inFile is the first and the last index in the file; the last is 0 if it is empty.
func (l *Log) inFile() (first, last uint64, err error) {
	if first, err = l.wal.FirstIndex(); err == nil {
		last, err = l.wal.LastIndex()
	}
	return first, last, err
}

// trim removes from the file what Begin(l.before, l.term) removes.
func (l *Log) trim(first, last uint64) error {
	upTo := last
	if l.before <= last {
		if r, err := l.read(l.before); err != nil {
			return err
		} else if r.Term == l.term {
			upTo = l.before
		}
	}
	return l.wal.DeleteRange(first, upTo)
}

// extensionLen is what a record has beside its data: up to where log and slots were stable, and how its volume begins.
const extensionLen = 16

// read reads a record from the file.
func (l *Log) read(index uint64) (replica.Record, error) {
	var e raft.Log
	if err := l.wal.GetLog(index, &e); err != nil {
		return replica.Record{}, err
	}
	if len(e.Extensions) != extensionLen {
		return replica.Record{}, fmt.Errorf("record %d is malformed", index)
	}
	if !bytes.Equal(e.Extensions[8:], l.volume[:8]) {
		return replica.Record{}, fmt.Errorf("record %d is of another volume: %w", index, ErrLost)
	}
	return replica.Record{
		Index: e.Index, Term: e.Term, Stable: binary.LittleEndian.Uint64(e.Extensions),
		Member: e.Type == raft.LogConfiguration, Data: e.Data,
	}, nil
}

// get is the value of a key, nil if it has none.
func (l *Log) get(key []byte) ([]byte, error) {
	b, err := l.wal.Get(key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return b, nil
}

// pair is the two numbers that setPair has set.
func (l *Log) pair(key []byte) (a, b uint64, err error) {
	v, err := l.get(key)
	if err != nil || len(v) == 0 {
		return 0, 0, err
	}
	if len(v) != 16 {
		return 0, 0, fmt.Errorf("%s: %d bytes", key, len(v))
	}
	return binary.LittleEndian.Uint64(v), binary.LittleEndian.Uint64(v[8:]), nil
}

func (l *Log) setPair(key []byte, a, b uint64) error {
	v := binary.LittleEndian.AppendUint64(nil, a)
	return l.wal.Set(key, binary.LittleEndian.AppendUint64(v, b))
}

// Bounds implements replica.Log.
func (l *Log) Bounds() (first, last uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.before + 1, l.last()
}

// last is the last index. The caller holds the lock.
func (l *Log) last() uint64 { return l.before + uint64(len(l.records)) }

// Record implements replica.Log.
func (l *Log) Record(index uint64) (replica.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if index <= l.before || index > l.last() {
		return replica.Record{}, fmt.Errorf("raftlog: no record %d between %d and %d", index, l.before+1, l.last())
	}
	return l.records[index-l.before-1], nil
}

// Has reports whether the log has the record with an index and a term, or an index before the first.
func (l *Log) Has(index, term uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return index <= l.before || index <= l.last() && l.records[index-l.before-1].Term == term
}

// Append implements replica.Log.
func (l *Log) Append(records []replica.Record) error {
	logs := make([]*raft.Log, len(records))
	for i := range records {
		r := &records[i]
		logs[i] = &raft.Log{Index: r.Index, Term: r.Term, Data: r.Data, Extensions: append(binary.LittleEndian.AppendUint64(make([]byte, 0, extensionLen), r.Stable), l.volume[:8]...)}
		if r.Member {
			logs[i].Type = raft.LogConfiguration
		}
	}
	if err := l.Cut(records[0].Index); err != nil {
		return err
	}
	if err := l.wal.StoreLogs(logs); err != nil {
		return fmt.Errorf("raftlog: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, records...)
	return nil
}

// Cut implements replica.Log.
func (l *Log) Cut(index uint64) error {
	first, last := l.Bounds()
	if index > last {
		return nil
	}
	if index < first {
		return fmt.Errorf("raftlog: a cut at %d, before %d", index, first)
	}
	if err := l.wal.DeleteRange(index, last); err != nil {
		return fmt.Errorf("raftlog: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = slices.Clip(l.records[:index-l.before-1])
	return nil
}

// Begin implements replica.Log.
func (l *Log) Begin(index, term uint64) error {
	first, last := l.Bounds()
	if index < first {
		return nil
	}
	if err := l.setBefore(index, term); err != nil {
		return fmt.Errorf("raftlog: %w", err)
	}
	l.mu.Lock()
	var rest []replica.Record
	if index <= last && l.records[index-l.before-1].Term == term {
		rest = slices.Clone(l.records[index-l.before:])
	}
	l.before, l.term, l.records, l.floor = index, term, rest, max(l.floor, index)
	l.mu.Unlock()
	if last < first {
		return nil
	}
	if err := l.trim(first, last); err != nil {
		return fmt.Errorf("raftlog: %w", err)
	}
	return nil
}

// SetFloor says up to which record none is offered any more: others have it for good, or get it
// otherwise. The record is there.
func (l *Log) SetFloor(index uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.floor = max(l.floor, min(index, l.last()))
}

// slack is how many records that are not offered stay in the file.
const slack = 512

// Trim removes the records that are not offered any more, when they are many.
func (l *Log) Trim() error {
	floor, term, ok := l.excess()
	if !ok {
		return nil
	}
	return l.Begin(floor, term)
}

// excess is the last record that is not offered any more, at one moment: SetFloor goes on. ok is false when such
// records are few.
func (l *Log) excess() (floor, term uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.floor-l.before < slack {
		return 0, 0, false
	}
	return l.floor, l.records[l.floor-l.before-1].Term, true
}

// Close closes the file.
func (l *Log) Close() error { return l.wal.Close() }
