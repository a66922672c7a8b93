package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/examples/volume/node"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/state"
	"godat/runtime/inspect"
)

// flip changes a byte of a node's disk, while the node does not run.
func (c *cluster) flip(id, off int) {
	f, err := os.OpenFile(filepath.Join(string(c.disk(id)), "disk"), os.O_RDWR, 0)
	require.NoError(c, err)
	at := int64(state.Size(0) + off)
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	require.NoError(c, err)
	b[0] ^= 1
	_, err = f.WriteAt(b[:], at)
	require.NoError(c, err)
	require.NoError(c, f.Close())
}

// checked is what a check says in the end.
func (c *cluster) checkedAt(id int, end func(text string, err error) bool) string {
	var text string
	c.eventually("the check does not come to that", func() bool {
		var out bytes.Buffer
		err := newOperator(c.ia, c.peers[id-1], &out).check(c.Context())
		text = fmt.Sprintf("%s%v", out.String(), err)
		return end(text, err)
	})
	return text
}

func TestACheckNamesTheRangesThatDifferAndTheNodeThatIsWrong(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.three()
	d := &content{h: c.host(), r: rand.New(rand.NewPCG(31, 32))}
	d.write(50)
	leader := c.leader()
	c.same()
	wrong := 1 + leader%3
	right := 6 - leader - wrong
	c.kill(wrong)
	for _, off := range []int{5, state.ChunkLen + 7, 9*state.ChunkLen + 1} {
		c.flip(wrong, off)
	}
	c.start(wrong)
	text := c.checkedAt(leader, func(_ string, err error) bool { return errors.Is(err, errDiffer) && !errors.Is(err, errNotAll) })
	most := fmt.Sprintf("%d, %d", min(leader, right), max(leader, right))
	require.Contains(t, text, fmt.Sprintf("nodes %s and node %d differ: 3 chunks of 64 KiB: bytes 0 to 131072, bytes 589824 to 655360", most, wrong))
	require.Contains(t, text, fmt.Sprintf("a majority agrees, so replace node %d,", wrong))

	c.kill(right)
	text = c.checkedAt(leader, func(_ string, err error) bool { return errors.Is(err, errDiffer) && errors.Is(err, errNotAll) })
	require.Contains(t, text, fmt.Sprintf("node %d: NOT COMPARED", right))
	require.Contains(t, text, "check again when there are all copies")
	require.NotContains(t, text, "recover", "the node that was not compared may be of the majority")
	c.kill(wrong)
	c.start(right)
	text = c.checkedAt(leader, func(_ string, err error) bool { return errors.Is(err, errNotAll) && !errors.Is(err, errDiffer) })
	require.Contains(t, text, fmt.Sprintf("node %d: NOT COMPARED", wrong))
	require.Contains(t, text, fmt.Sprintf("the disks of nodes %s are the same after record", most))
}

func TestAnOldCopyThatIsPutBackIsNoReasonToRebuildTheNodeThatHasMore(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.three()
	d := &content{h: c.host(), r: rand.New(rand.NewPCG(33, 34))}
	d.write(20)
	c.same()
	again := c.leader()
	away, left := 1+again%3, 6-again-(1+again%3)
	old := string(c.disk(again)) + ".old"
	c.kill(again)
	require.NoError(t, os.CopyFS(old, os.DirFS(string(c.disk(again)))))
	c.start(again)
	c.same()
	c.kill(away)
	d.write(50) // on two nodes
	c.eventually("it does not apply all", func() bool {
		at, err := c.ask(c.leader(), askStatus)
		s, errLeft := c.ask(left, askStatus)
		return err == nil && errLeft == nil && s.Applied == at.Last
	})
	c.killAll()
	require.NoError(t, os.RemoveAll(string(c.disk(again))))
	require.NoError(t, os.Rename(old, string(c.disk(again))))

	c.start(away)
	c.start(again)
	at := c.leader()
	c.start(left)
	c.eventually("it follows", func() bool {
		s, err := c.ask(left, askStatus)
		return err == nil && s.Ahead != ""
	})
	text, exit := c.statusAt(left)
	require.Equal(t, exitFewer, exit)
	require.Contains(t, text, fmt.Sprintf("WAITS node %d has applied record ", left))
	require.Contains(t, text, "recover this one")
	text = c.checkedAt(at, func(text string, err error) bool { return errors.Is(err, errNotAll) })
	require.Contains(t, text, fmt.Sprintf("node %d: NOT COMPARED: it follows nobody, since it has applied what the leader never had", left))
	require.NotContains(t, text, "check again")
	c.eventually("the leader does not say that it is refused", func() bool {
		text, _ = c.statusAt(at)
		return strings.Contains(text, fmt.Sprintf("REFUSED node %d ", left)) && strings.Contains(text, "never had") &&
			strings.Contains(text, fmt.Sprintf("node %d is silent", left))
	})
	row := newReplicaRow(uint64(left), &node.Status{ID: 9, Leader: 9, Members: raftlog.Members{uint64(left): {}}, Replicas: map[uint64]node.Progress{
		uint64(left): {Silent: true, Missed: node.Missed{Refuses: true, Why: "node 3 has applied record 5, which node 9 never had"}},
	}})
	require.Contains(t, row.Trouble(inspect.Late), "it follows nobody: node 3 has applied record 5")
}
