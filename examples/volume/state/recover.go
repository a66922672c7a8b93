package state

import (
	"fmt"

	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/store"
)

// Recover makes a store with the disk of one volume the disk of another one, for good: it has the same blocks, and all
// entries up to one with an index and a term. Interrupted, it is called again. No Disk is open.
func Recover(s store.Store, volume identity.ID, index, term uint64) error {
	memory := s.Memory()
	if len(memory) < marksLen {
		return fmt.Errorf("state: a disk of %d bytes", len(memory))
	}
	if last, err := lastMark(memory); err == nil {
		for _, r := range last.blanks {
			if err := s.Zero(marksLen+r.off, r.end-r.off); err != nil {
				return fmt.Errorf("state: %w", err)
			}
		}
		if err := s.Flush(0, len(memory)); err != nil {
			return fmt.Errorf("state: %w", err)
		}
	}
	clear(memory[:marksLen])
	mark{number: 1, index: index, term: term, whole: index, volume: volume}.put(memory)
	if err := s.Flush(0, marksLen); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	return nil
}
