package node

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/volume/raftlog"
	"godat/hw"
	"godat/hw/event"
	"godat/runtime/rpc"
)

// newWays is a site that knows addresses by its configuration alone, and counts the news.
func newWays(t *testing.T) (s *site, news *int) {
	log, err := raftlog.Open(t.TempDir(), raftlog.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, log.Close()) })
	s = &site{cfg: Config{ID: 1, Layout: layout, Peers: raftlog.Members{1: {Addr: "own"}, 2: {Addr: "mistyped"}}}, log: log}
	news = new(int)
	s.ways.news = func() { *news++ }
	return s, news
}

func TestANodeLearnsWhereOthersAreUntilItIsAMember(t *testing.T) {
	s, news := newWays(t)
	require.Equal(t, s.cfg.Peers, s.where())
	told := raftlog.Members{1: {Addr: "another's"}, 2: {Addr: "b", Learner: true}, 3: {Addr: "c"}, 0: {Addr: "nobody's"}, 4: {Addr: "beyond the layout"}}
	for range 2 {
		s.learnWays(told)
	}
	require.Equal(t, 1, *news, "what is known is no news")
	require.Equal(t, raftlog.Members{1: {Addr: "own"}, 2: {Addr: "b"}, 3: {Addr: "c"}}, s.where())

	members := raftlog.Members{1: {Addr: "own"}, 2: {Addr: "kept"}}
	require.NoError(t, s.log.SetMembers(members))
	require.Equal(t, raftlog.Members{1: {Addr: "own"}, 2: {Addr: "kept"}, 3: {Addr: "c"}}, s.where(), "what was kept is true")
	require.NoError(t, s.log.SetGone(3))
	require.Equal(t, members, s.where(), "nobody speaks to a node that was removed")
}

// blackhole is the error of an address whose route leads nowhere.
type blackhole struct{}

func (blackhole) Error() string { return "runtime.Dial x: connect: invalid argument" }

func (blackhole) Unwrap() []error { return []error{event.Error(event.Unreachable), syscall.EINVAL} }

func TestWhyANodeIsNotReachedIsShort(t *testing.T) {
	for want, err := range map[string]error{
		"":                                    nil,
		"others":                              &rpc.Error{Text: "node: others"},
		"nobody listens there":                errors.New("runtime.Dial x: godat: connect: connection refused (111), found here"),
		"something":                           errors.New("something"),
		"no route to it":                      blackhole{},
		"it does not answer":                  fmt.Errorf("runtime.Dial x: %w", context.DeadlineExceeded),
		"it ended the connection":             &rpc.CallError{Err: rpc.ErrEnded},
		"the stream ended without a farewell": &hw.Cause{Text: "the stream ended without a farewell: the peer's process was killed or has crashed, or something else"},
		"it hung up":                          fmt.Errorf("runtime.Dial x: %w", &hw.Cause{Text: "the peer hung up (as one does that ends); asked again", Found: hw.SideLocal}),
	} {
		s, _ := newWays(t)
		s.reached(2, err)
		s.gets(err)
		assert.Equal(t, want, s.ways.failed[2])
		assert.Equal(t, want, s.ways.gets)
	}
}
