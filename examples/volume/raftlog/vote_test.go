package raftlog

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/identity"
)

// flipped is a file some of whose bits are others when they are read.
type flipped struct {
	File
	key string
	bit int // of the value; -1 is none
}

func (f *flipped) Get(key []byte) ([]byte, error) {
	b, err := f.File.Get(key)
	if b = slices.Clone(b); string(key) == f.key && f.bit >= 0 {
		b[f.bit/8] ^= 1 << (f.bit % 8)
	}
	return b, err
}

// Close implements File: the next log has the same one.
func (f *flipped) Close() error { return nil }

// onFile is an open log's file, which other logs may have, too.
func onFile(t *testing.T) (f *flipped, open func() (*Log, error)) {
	file, err := openFiles(t.TempDir(), Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, file.Close()) })
	f = &flipped{File: file, bit: -1}
	volume := identity.New()
	return f, func() (*Log, error) { return Open("", Config{File: f, Volume: volume}) }
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
	l, err = open()
	require.NoError(t, err)
	assert.Equal(t, Vote{Term: 9, For: 3}, l.Vote())
	assert.Equal(t, all, l.Members())

	require.NoError(t, l.SetVote(Vote{Term: 10}))
	require.NoError(t, l.SetMembers(all))
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
