package raftlog

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/identity"
)

// flipped is a file some of whose bits are others when they are read, and which crashes.
type flipped struct {
	Medium
	key  string
	bit  int  // of the value; -1 is none
	sets *int // after how many Sets nothing is kept any more; nil is never
}

var errCrash = errors.New("crash")

func (f *flipped) Set(key, value []byte) error {
	if f.sets != nil {
		if *f.sets == 0 {
			return errCrash
		}
		*f.sets--
	}
	return f.Medium.Set(key, value)
}

func (f *flipped) DeleteRange(first, last uint64) error {
	if f.sets != nil {
		return errCrash
	}
	return f.Medium.DeleteRange(first, last)
}

func (f *flipped) Get(key []byte) ([]byte, error) {
	b, err := f.Medium.Get(key)
	if b = slices.Clone(b); string(key) == f.key && f.bit >= 0 {
		b[f.bit/8] ^= 1 << (f.bit % 8)
	}
	return b, err
}

// Close implements Medium: the next log has the same one.
func (f *flipped) Close() error { return nil }

// onFile is an open log's file, which other logs may have, too.
func onFile(t *testing.T) (f *flipped, open func() (*Log, error)) {
	file, err := openWAL(t.TempDir(), Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, file.Close()) })
	f = &flipped{Medium: file, bit: -1}
	volume := identity.New()
	return f, func() (*Log, error) { return Open("", Config{Medium: f, Volume: volume}) }
}

func TestAVoteWithAFlippedBitIsRefused(t *testing.T) {
	f, open := onFile(t)
	l, err := open()
	require.NoError(t, err)
	v := Vote{Term: 7, For: 2}
	require.NoError(t, l.SetVote(v))
	f.key = string(keyVote)
	for f.bit = range 8 * voteLen {
		_, err := open()
		require.ErrorIs(t, err, ErrFlipped, "bit %d", f.bit)
		require.ErrorContains(t, err, "vote", "bit %d", f.bit)
	}
	f.bit = -1
	l, err = open()
	require.NoError(t, err)
	assert.Equal(t, v, l.Vote())
}

func TestMembersWithAFlippedBitAreRefusedOrTheSame(t *testing.T) {
	f, open := onFile(t)
	l, err := open()
	require.NoError(t, err)
	all := Members{1: {Addr: "127.0.0.1:7001"}, 2: {Addr: "127.0.0.1:7002", Learner: true}, 13: {Addr: "[::1]:7003"}}
	require.NoError(t, l.SetMembers(all))
	b, err := f.Get(keyMembers)
	require.NoError(t, err)
	f.key = string(keyMembers)
	refused := 0
	for f.bit = range 8 * len(b) {
		l, err := open()
		if err == nil {
			require.Equal(t, all, l.Members(), "bit %d", f.bit)
			continue
		}
		require.ErrorIs(t, err, ErrFlipped, "bit %d", f.bit)
		require.ErrorContains(t, err, "members", "bit %d", f.bit)
		refused++
	}
	assert.Greater(t, refused, 4*len(b))
}

// A program of before kept votes and members without a CRC, and reads those that have one.
func TestTheFormatBeforeIsReadAndCanBeGoneBackTo(t *testing.T) {
	f, open := onFile(t)
	l, err := open()
	require.NoError(t, err)
	require.NoError(t, l.setPair(keyVote, 9, 3))
	all := Members{1: {Addr: "a:1"}, 3: {Addr: "b:3", Learner: true}}
	b, err := json.Marshal(all)
	require.NoError(t, err)
	require.NoError(t, f.Set(keyMembers, b))
	require.NoError(t, f.Set(keyGone, []byte(`[2,4]`)))
	require.NoError(t, f.Set(keyKnown, []byte(`{"1":{"birth":7}}`)))
	require.NoError(t, l.setPair(keyBefore, 5, 2))
	l, err = open()
	require.NoError(t, err)
	assert.Equal(t, Vote{Term: 9, For: 3}, l.Vote())
	assert.Equal(t, all, l.Members())
	assert.Equal(t, []uint64{2, 4}, l.AllGone())
	assert.Equal(t, map[uint64]Known{1: {Birth: 7}}, l.Known())
	first, _ := l.Bounds()
	assert.Equal(t, uint64(6), first)

	require.NoError(t, l.SetVote(Vote{Term: 10}))
	require.NoError(t, l.SetMembers(all))
	require.NoError(t, l.SetGone(6))
	b, err = f.Get(keyGone)
	require.NoError(t, err)
	var gone []uint64
	require.NoError(t, json.Unmarshal(b, &gone))
	assert.Equal(t, []uint64{2, 4, 6}, gone)
	term, votedFor, err := l.pair(keyVote)
	require.NoError(t, err)
	assert.Equal(t, uint64(10), term)
	assert.Greater(t, votedFor, uint64(mostFor), "nobody has that id: it votes once more in no term in which it may have voted")
	b, err = f.Get(keyMembers)
	require.NoError(t, err)
	var before Members
	require.NoError(t, json.Unmarshal(b, &before))
	assert.Equal(t, all, before)
}

func TestWhoIsGoneAndWhatIsKnownIsTheSameOrRefusedWithAFlippedBit(t *testing.T) {
	f, open := onFile(t)
	l, err := open()
	require.NoError(t, err)
	gone, known := []uint64{3, 5}, map[uint64]Known{1: {Birth: 1<<63 + 5, Hosts: "127.0.0.1:4420"}, 2: {Hosts: "[::1]:4421"}}
	require.NoError(t, l.SetGone(gone...))
	require.NoError(t, l.SetKnown(known))
	for _, key := range [][]byte{keyGone, keyKnown} {
		f.key, f.bit = string(key), -1
		b, err := f.Get(key)
		require.NoError(t, err)
		refused := 0
		for f.bit = range 8 * len(b) {
			l, err := open()
			if err == nil {
				require.Equal(t, gone, l.AllGone(), "bit %d", f.bit)
				require.Equal(t, known, l.Known(), "bit %d", f.bit)
				continue
			}
			require.ErrorIs(t, err, ErrFlipped, "bit %d", f.bit)
			require.ErrorContains(t, err, string(key), "bit %d", f.bit)
			refused++
		}
		assert.GreaterOrEqual(t, refused, 8*len(b)-1)
	}
}

// A flip in what the record before the first is would remove records that were acknowledged.
func TestTheRecordsStayWithAFlippedBitInWhatIsBeforeThem(t *testing.T) {
	f, open := onFile(t)
	l, err := open()
	require.NoError(t, err)
	k := &kept{TB: t, Log: l}
	k.add(2, 1, 9)
	k.add(3, 10, 12)
	require.NoError(t, l.Begin(5, 2))
	for key, n := range map[string]int{string(keyBefore): 16, string(keyBegins): beginsLen} {
		for f.key, f.bit = key, 0; f.bit < 8*n; f.bit++ {
			l, err := open()
			if err != nil {
				require.ErrorIs(t, err, ErrFlipped, "%s: bit %d", key, f.bit)
				require.Equal(t, string(keyBegins), key)
				continue
			}
			first, last := l.Bounds()
			term, err := l.Term(5)
			require.NoError(t, err)
			require.Equal(t, [3]uint64{6, 12, 2}, [3]uint64{first, last, term}, "%s: bit %d", key, f.bit)
		}
	}
}

// A crash comes between the two ways in which Begin keeps the same, and before it has removed anything.
func TestABeginThatACrashInterruptsIsMadeOrNot(t *testing.T) {
	for sets := range 3 {
		f, open := onFile(t)
		l, err := open()
		require.NoError(t, err)
		k := &kept{TB: t, Log: l}
		k.add(2, 1, 9)
		require.NoError(t, l.Begin(3, 2))
		f.sets = new(sets)
		require.ErrorIs(t, l.Begin(6, 2), errCrash)
		f.sets = nil
		for range 2 {
			l, err = open()
			require.NoError(t, err)
			first, last := l.Bounds()
			want := [2]uint64{7, 9}
			if sets == 0 {
				want[0] = 4
			}
			require.Equal(t, want, [2]uint64{first, last}, "%d sets", sets)
			before, _, err := l.pair(keyBefore)
			require.NoError(t, err)
			require.Equal(t, first-1, before, "a program of before reads the same")
		}
	}
}

// beginBefore is what Begin was in a program of before.
func beginBefore(t *testing.T, f *flipped, l *Log, index, term uint64, trims bool) {
	require.NoError(t, l.setPair(keyBefore, index, term))
	if first, last, err := l.inFile(); trims && last != 0 {
		require.NoError(t, err)
		require.NoError(t, f.DeleteRange(first, min(index, last)))
	}
}

func TestWhereAProgramOfBeforeHasBegunSinceCounts(t *testing.T) {
	for name, begin := range map[string]struct {
		index uint64
		trims bool
		first uint64
	}{"it went on": {6, true, 7}, "it has no record": {20, true, 21}, "it had only begun to": {6, false, 4}} {
		t.Run(name, func(t *testing.T) {
			f, open := onFile(t)
			l, err := open()
			require.NoError(t, err)
			k := &kept{TB: t, Log: l}
			k.add(2, 1, 9)
			require.NoError(t, l.Begin(3, 2))
			beginBefore(t, f, l, begin.index, 2, begin.trims)
			for range 2 {
				l, err = open()
				require.NoError(t, err)
				first, _ := l.Bounds()
				require.Equal(t, begin.first, first)
			}
		})
	}
}
