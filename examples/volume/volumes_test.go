package main

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/volume/node"
)

func TestAProcessServesSeveralVolumes(t *testing.T) {
	t.Parallel()
	first := newCluster(t)
	second := &cluster{TB: t, token: newToken(2), ia: first.ia, between: first.ia, listens: first.listens, running: first.running}
	for range most {
		second.peers = append(second.peers, freePort(t))
	}
	second.token.Subsystem = first.token.Subsystem
	page := freePort(t)
	for id := 1; id <= 3; id++ {
		args := []string{"serve", "--listen=" + first.listens[id-1]}
		for namespace, c := range []*cluster{first, second} {
			o := volumeOptions{ID: uint64(id), Peers: c.founders(), Token: c.tokenText()}
			dir := filepath.Join(first.dir, fmt.Sprintf("%d-%d", id, namespace))
			_, err := create(t.Context(), &o, dir)
			require.NoError(t, err)
			_, err = create(t.Context(), &o, dir)
			require.ErrorContains(t, err, "already")
			args = append(args, "--data="+dir)
		}
		if id == 1 {
			args = append(args, "--inspect="+page)
		}
		first.run(id, args)
	}
	contents := func(c *cluster, namespace uint32) *content {
		d := &content{h: c.host(), r: rand.New(rand.NewPCG(5, uint64(namespace)))}
		d.h.disk = namespace
		return d
	}
	a, b := contents(first, 1), contents(second, 2)
	require.NoError(t, newOperator(first.ia, first.peers[0], io.Discard).transfer(t.Context(), 1))
	require.NoError(t, newOperator(first.ia, second.peers[0], io.Discard).transfer(t.Context(), 2))
	a.write(50)
	b.write(50)
	shows := func(kind string, all ...string) {
		response, err := http.Get("http://" + page + "/?format=json&show=" + kind) //nolint:noctx // it is this machine's
		require.NoError(t, err)
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		for _, what := range all {
			assert.True(t, strings.Contains(string(text), strconv.Quote(what)), "%s: no %s", kind, what)
		}
	}
	shows("volumes", first.peers[0], second.peers[0], "Term", "FreeSlots", "Rebuilds")
	shows("replicas", first.peers[0], first.peers[1], first.peers[2], "Lag")
	first.kill(1)
	a.write(20)
	a.read()
	b.write(20)
	b.read()
	require.NotEqual(t, 1, first.leader())
	require.Equal(t, []int{2, 3}, slices.Sorted(maps.Keys(first.running)))
	s, err := second.ask(3, node.Command{Do: "status"})
	require.NoError(t, err)
	require.Len(t, s.Members, 3)
}

func TestVolumesThatAreServedTogetherHaveNamespacesOfTheirOwn(t *testing.T) {
	var dirs []string
	text := ""
	for range 2 {
		dirs = append(dirs, t.TempDir())
		o := volumeOptions{ID: 1, Peers: "1=here:1", Token: text, Namespace: 3, Size: "1M", Slots: 1, SlotSize: "64K"}
		made, err := create(t.Context(), &o, dirs[len(dirs)-1])
		require.NoError(t, err)
		text = made.String()
	}
	all, err := openAll(dirs[:1])
	require.NoError(t, err)
	require.NoError(t, all.close())
	_, err = openAll(dirs)
	require.ErrorContains(t, err, "--namespace")
}
