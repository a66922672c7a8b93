package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/examples/volume/state"
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
