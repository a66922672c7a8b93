package raftlog

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"godat/examples/volume/entry"
)

// ErrFlipped is the error of a log that has not what was kept there beside the records. A node that takes another vote for
// its own may vote twice in a term, and one with other members may count other majorities.
var ErrFlipped = errors.New("the node's log has other bytes than were kept there, and with them it may break what it promised: " +
	"remove the node from the volume, and add one of another id")

// A vote as bytes, little-endian. The CRC is of all before it, and of the volume. A vote of the format before has nothing
// behind its four bytes of for; a program that writes that takes such a vote for one that nobody can get, so it votes for nobody
// else in that term.
//
//	0      8     11       12    16
//	+------+-----+--------+-----+
//	| term | for | format | CRC |
//	+------+-----+--------+-----+
const (
	voteLen    = 16
	voteFormat = 1
	voteSum    = voteLen - 4
	mostFor    = 1<<24 - 1
)

// voteBytes are the bytes of a vote.
func (l *Log) voteBytes(v Vote) ([]byte, error) {
	if v.For > mostFor {
		return nil, fmt.Errorf("a vote for node %d", v.For)
	}
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, voteLen), v.Term)
	b = binary.LittleEndian.AppendUint32(b, uint32(v.For)|voteFormat<<24)
	return binary.LittleEndian.AppendUint32(b, l.sum(b)), nil
}

// parseVote is the vote that bytes say.
func (l *Log) parseVote(b []byte) (v Vote, err error) {
	if len(b) != voteLen {
		return v, ErrFlipped
	}
	v.Term = binary.LittleEndian.Uint64(b)
	about, sum := binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[voteSum:])
	v.For = uint64(about & mostFor)
	if before := about>>24 == 0 && sum == 0; !before && (about>>24 != voteFormat || sum != l.sum(b[:voteSum])) {
		return Vote{}, ErrFlipped
	}
	return v, nil
}

// sum is the CRC of bytes of this volume.
func (l *Log) sum(b []byte) uint32 {
	return entry.Sum(append(l.volume[:len(l.volume):len(l.volume)], b...))
}

// loadVote reads the vote.
func (l *Log) loadVote() error {
	b, err := l.get(keyVote)
	if err != nil || len(b) == 0 {
		return err
	}
	if l.vote, err = l.parseVote(b); err != nil {
		return fmt.Errorf("%s: %w", keyVote, err)
	}
	return nil
}

// Vote is the term and the vote that SetVote has set.
func (l *Log) Vote() Vote {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.vote
}

// SetVote keeps the term and the vote for good.
func (l *Log) SetVote(v Vote) error {
	if v == l.Vote() {
		return nil
	}
	b, err := l.voteBytes(v)
	if err == nil {
		err = l.wal.Set(keyVote, b)
	}
	if err != nil {
		return fmt.Errorf("raftlog: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.vote = v
	return nil
}

// keptMember is a member as it is kept. The format before has no CRC, and ignores it.
type keptMember struct {
	Member
	CRC *uint32 `json:"crc,omitempty"` // of the id and of what else is said of the member
}

// memberSum is the CRC of a member.
func (l *Log) memberSum(id uint64, m Member) uint32 {
	b := binary.LittleEndian.AppendUint64(nil, id)
	if m.Learner {
		b = append(b, 1)
	}
	return l.sum(append(append(b, 0), m.Addr...))
}

// memberBytes are the bytes of members.
func (l *Log) memberBytes(all Members) ([]byte, error) {
	kept := make(map[uint64]keptMember)
	for id, m := range all {
		kept[id] = keptMember{m, new(l.memberSum(id, m))}
	}
	return json.Marshal(kept)
}

// loadMembers reads the members.
func (l *Log) loadMembers() error {
	b, err := l.get(keyMembers)
	if err != nil || len(b) == 0 {
		return err
	}
	var kept map[uint64]keptMember
	if err := json.Unmarshal(b, &kept); err != nil {
		return fmt.Errorf("%s: %w: %w", keyMembers, ErrFlipped, err)
	}
	l.members = make(Members)
	for id, m := range kept {
		if m.CRC != nil && *m.CRC != l.memberSum(id, m.Member) {
			return fmt.Errorf("%s: node %d: %w", keyMembers, id, ErrFlipped)
		}
		l.members[id] = m.Member
	}
	return nil
}

// SetMembers keeps the members for good, and which are members no more.
func (l *Log) SetMembers(m Members) error {
	for id := range l.Members() {
		if _, stays := m[id]; !stays {
			if err := l.SetGone(id); err != nil {
				return err
			}
		}
	}
	b, err := l.memberBytes(m)
	if err == nil {
		err = l.wal.Set(keyMembers, b)
	}
	if err != nil {
		return fmt.Errorf("raftlog: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.members = maps.Clone(m)
	return nil
}

// Members are the members that SetMembers has set.
func (l *Log) Members() Members {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.members)
}

// Founded reports whether the log has members: its node was there from the beginning, or was rebuilt since.
func (l *Log) Founded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.members) != 0
}

// Member is a member.
func (l *Log) Member(id uint64) (m Member, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, ok = l.members[id]
	return m, ok
}

// Gone reports whether a node was a member, and is none any more.
func (l *Log) Gone(id uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, member := l.members[id]
	return !member && slices.Contains(l.gone, id)
}

// AllGone are the nodes that were members.
func (l *Log) AllGone() []uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.gone)
}

// SetGone keeps for good that nodes were members once.
func (l *Log) SetGone(ids ...uint64) error {
	all := l.AllGone()
	for _, id := range ids {
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	if len(all) == len(l.AllGone()) {
		return nil
	}
	if err := l.setSealed(keyGone, all); err != nil {
		return fmt.Errorf("raftlog: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = all
	return nil
}
