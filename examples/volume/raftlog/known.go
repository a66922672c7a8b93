package raftlog

import (
	"fmt"
	"maps"
)

// Known is what is known of a node, mostly by itself.
type Known struct {
	Birth uint64 `json:"birth,omitempty"` // of its files, drawn when they were made; 0 is not known
	Hosts string `json:"hosts,omitempty"` // HOST:PORT at which it serves hosts, if it does
	For   uint64 `json:"for,omitempty"`   // the node in whose place it was added, which says its leader
}

// Known is what is known of all nodes that have said something.
func (l *Log) Known() map[uint64]Known {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.known)
}

// SetKnown keeps what is known of nodes for good.
func (l *Log) SetKnown(all map[uint64]Known) error {
	if err := l.setSealed(keyKnown, all); err != nil {
		return fmt.Errorf("raftlog: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = maps.Clone(all)
	return nil
}
