// Package replica is what a node keeps of a volume: a log of entries, a journal with the
// data of some, and the disk that they change.
//
// It knows no engine: it takes records that an engine has ordered, says when they are
// stable, and applies those that the engine says are committed.
package replica

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"godat/examples/nvmeof/store"
	"godat/examples/volume/entry"
	"godat/examples/volume/journal"
	"godat/examples/volume/state"
)

// Record is an entry of the log. Its data is an entry.Entry as bytes, or a change of the members, which the
// engine knows and which changes nothing on the disk.
type Record struct {
	Index, Term uint64
	Stable      uint64 // up to where log and slots were stable when the record was written
	Member      bool   // Data is a change of the members
	Data        []byte
}

// entry is the record's entry.
func (r *Record) entry() (entry.Entry, error) {
	if r.Member {
		return entry.Entry{}, nil
	}
	return entry.Parse(r.Data)
}

// Log has records of ascending indexes, without gaps. A log that was opened is stable.
// After an error it is used no more.
type Log interface {
	// Bounds is the first and the last index. The last of an empty log is the one before the
	// first.
	Bounds() (first, last uint64)
	Record(index uint64) (Record, error)
	// Append adds records, in place of those that have their indexes or higher ones. They
	// are stable when it returns.
	Append(records []Record) error
	// Cut removes the records from an index on, for good.
	Cut(index uint64) error
	// Begin removes, for good, the records up to an index, and all others, too, unless the
	// record of the index has the term.
	Begin(index, term uint64) error
}

// ErrRotten is the error of a replica that has lost data that it acknowledged. It
// acknowledges nothing and applies nothing until it has caught up.
var ErrRotten = errors.New("replica: a slot has lost its data")

// Replica is a node's part of a volume. One goroutine owns it. The disk may be used by others.
type Replica struct {
	// Immutable.
	journal *journal.Journal
	disk    *state.Disk
	log     Log

	stable uint64 // log and slots are stable up to this record
	rotten bool   // a slot has lost the data of a record that may have been acknowledged
	failed error  // of the journal or the log
}

// Open opens the replica after its process or its machine has ended. A slot that has other
// data than its record says was written when the machine ended, and never acknowledged; Open
// cuts the log there. If the record says otherwise the slot is rotten.
func Open(j *journal.Journal, disk store.Store, l Log) (*Replica, error) {
	_, last := l.Bounds()
	d, err := state.Open(disk, j.Volume(), last)
	if err != nil {
		return nil, err
	}
	r := &Replica{journal: j, disk: d, log: l}
	if err := r.join(); err != nil {
		return nil, err
	}
	if first, last := l.Bounds(); last >= first {
		record, err := l.Record(last)
		if err != nil {
			return nil, err
		}
		r.stable = record.Stable
	}
	return r, r.check()
}

// join ends a CaughtUp that a crash has interrupted: the disk has another replica's record, and the log does not go
// on from that.
func (r *Replica) join() error {
	first, last := r.log.Bounds()
	index, term := r.disk.Applied()
	switch {
	case index+1 < first:
		return fmt.Errorf("replica: the log begins with record %d, and the disk has record %d", first, index)
	case index+1 == first:
		return nil
	case index <= last:
		record, err := r.log.Record(index)
		if err != nil || record.Term == term {
			return err
		}
	}
	return r.log.Begin(index, term)
}

// check compares the slots of all records that are not in the disk, and makes them stable:
// a process that was killed may have left them in the system's memory.
func (r *Replica) check() error {
	catching := errors.Is(r.disk.Ready(), state.ErrCatchingUp)
	r.rotten = catching
	first, last := r.log.Bounds()
	applied, _ := r.disk.Applied()
	var good []entry.Entry
	for index := max(first, applied+1); index <= last; index++ {
		_, e, err := r.record(index)
		if err != nil {
			return err
		}
		if err = r.inPlace(&e); err == nil && e.Op != entry.Write && !e.Right(e.Data) {
			err = fmt.Errorf("%w: record %d says something else", journal.ErrOther, index)
		}
		switch {
		case err == nil:
			good = append(good, e)
		case !errors.Is(err, journal.ErrOther):
			return err
		case index <= r.stable || catching:
			r.rotten = true
		default:
			if err := r.log.Cut(index); err != nil {
				return err
			}
			r.disk.Cut(index)
			last = index - 1
		}
	}
	if err := r.journal.Sync(good); err != nil {
		return err
	}
	r.stable = max(last, applied)
	return nil
}

// record is a record and its entry.
func (r *Replica) record(index uint64) (Record, entry.Entry, error) {
	record, err := r.log.Record(index)
	if err != nil {
		return record, entry.Entry{}, err
	}
	e, err := record.entry()
	return record, e, err
}

// inPlace is nil if the data of an entry is where the entry says.
func (r *Replica) inPlace(e *entry.Entry) error {
	if e.Op != entry.Write {
		return nil
	}
	_, err := r.journal.Data(e)
	return err
}

// Accept makes records and their slots stable, side by side. The log does not have the
// records; it may have others of their indexes, which never were committed. The data that is in a record itself was found
// right by the caller. The caller may
// acknowledge the records when Accept has returned nil. Error journal.ErrOther says that the data of one is not in
// its slot; nothing has happened then.
func (r *Replica) Accept(records []Record) error {
	if r.failed != nil {
		return r.failed
	}
	if r.rotten {
		return ErrRotten
	}
	if len(records) == 0 {
		return nil
	}
	_, last := r.log.Bounds()
	entries := make([]entry.Entry, len(records))
	stable := min(r.stable, records[0].Index-1)
	for i := range records {
		var err error
		if entries[i], err = records[i].entry(); err != nil {
			return err
		}
		if err = r.inPlace(&entries[i]); err != nil {
			return err
		}
		records[i].Stable = stable
	}
	if err := r.sync(entries, records); err != nil {
		r.failed = fmt.Errorf("replica: %w", err)
		return r.failed
	}
	if records[0].Index <= last {
		r.disk.Cut(records[0].Index)
	}
	r.stable = records[len(records)-1].Index
	return nil
}

// sync makes slots and records stable. Records that name no slot need no other goroutine.
func (r *Replica) sync(entries []entry.Entry, records []Record) error {
	if !slices.ContainsFunc(entries, func(e entry.Entry) bool { return e.Op == entry.Write }) {
		return r.log.Append(records)
	}
	var both errgroup.Group
	both.Go(func() error { return r.journal.Sync(entries) })
	both.Go(func() error { return r.log.Append(records) })
	return both.Wait()
}

// Apply applies all records up to one that is committed.
func (r *Replica) Apply(commit uint64) error {
	if r.rotten {
		return ErrRotten
	}
	index, _ := r.disk.Applied()
	for index++; index <= commit; index++ {
		record, e, err := r.record(index)
		if err != nil {
			return err
		}
		var data []byte
		switch e.Op {
		case entry.Write:
			data, err = r.journal.Data(&e)
			e = e.Proven()
		case entry.Small:
			e = e.Proven() // when it came, or when the replica was opened
		default:
		}
		if err == nil {
			err = r.disk.Apply(index, record.Term, &e, data)
		}
		if errors.Is(err, state.ErrOther) || errors.Is(err, journal.ErrOther) {
			r.rotten = true
			return fmt.Errorf("%w: record %d: %w", ErrRotten, index, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Release makes the disk stable and returns the record up to which it needs neither log nor
// slots any more.
func (r *Replica) Release() (index uint64, err error) { return r.disk.Release() }

// Disk is the disk, to be read, and to be listed for others.
func (r *Replica) Disk() *state.Disk { return r.disk }

// Rotten reports whether the replica has to catch up before it does anything else.
func (r *Replica) Rotten() bool { return r.rotten }

// CatchUp begins to catch up from a snapshot of another replica. The data of the log's records may be
// overwritten from now on. A snapshot of less than the replica has is refused, and changes nothing.
func (r *Replica) CatchUp(s state.Snapshot) (*state.CatchUp, error) {
	if applied, _ := r.disk.Applied(); !r.rotten && s.Index < applied {
		return nil, fmt.Errorf("replica: a snapshot of record %d for a replica that has applied record %d", s.Index, applied)
	}
	c, err := r.disk.CatchUp(s)
	r.rotten = r.rotten || err == nil
	return c, err
}

// CaughtUp ends what CatchUp began. The replica is still rotten if its log has a later
// record whose slot has lost its data; a later snapshot has that.
func (r *Replica) CaughtUp(c *state.CatchUp) error {
	if err := c.Finish(); err != nil {
		return err
	}
	index, term := r.disk.Applied()
	if err := r.log.Begin(index, term); err != nil {
		return err
	}
	return r.check()
}
