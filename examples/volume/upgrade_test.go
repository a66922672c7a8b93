package main

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// before is the program of the commit before the last one that changed the volume.
func before(t *testing.T) string {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "git", args...).Output()
		return strings.TrimSpace(string(out)), err
	}
	last, err := git("rev-list", "-1", "HEAD", "--", ".")
	if err != nil || last == "" {
		t.Skip("capability: git-history")
	}
	if _, err := git("rev-parse", "-q", "--verify", last+"~1^{tree}"); err != nil {
		t.Skip("capability: git-history")
	}
	top, err := git("rev-parse", "--show-toplevel")
	require.NoError(t, err)
	dir := t.TempDir()
	archive := exec.CommandContext(t.Context(), "git", "-C", top, "archive", "--output="+filepath.Join(dir, "all.tar"), last+"~1")
	out, err := archive.CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.CommandContext(t.Context(), "tar", "-xf", filepath.Join(dir, "all.tar"), "-C", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	program := filepath.Join(dir, "volume.before")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = filepath.Join(dir, "examples", "volume")
	build.Env = append(os.Environ(), "GOWORK=off")
	out, err = build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

func TestAVolumeIsUpgradedNodeByNodeUnderLoad(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.program = before(t)
	c.three()
	d := &content{h: c.host(), r: rand.New(rand.NewPCG(19, 20))}
	d.write(30)
	stop, loaded := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(loaded)
		for {
			select {
			case <-stop:
				return
			default:
				d.write(1)
			}
		}
	}()
	whole := func() {
		c.eventually("not three copies", func() bool {
			s, err := c.ask(c.leader(), askStatus)
			have, asked, _ := copies(&s)
			return err == nil && s.Serves() && have == 3 && asked == 3
		})
	}
	whole()
	c.program = "" // this one
	for id := 1; id <= 3; id++ {
		p := c.running[id]
		c.signal(id, syscall.SIGTERM)
		<-p.ended
		delete(c.running, id)
		c.start(id)
		whole()
	}
	close(stop)
	<-loaded
	d.read()
	c.same()
	for id := 1; id <= 3; id++ {
		s, err := c.ask(id, askStatus)
		require.NoError(t, err)
		require.Empty(t, s.Refusals)
	}
}
