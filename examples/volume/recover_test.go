package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/store"
	"godat/examples/volume/node"
	"godat/examples/volume/replica"
)

func TestANodeThatLostItsMajorityBecomesAVolumeOfItsOwn(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.three()
	d := &content{h: c.host(), r: rand.New(rand.NewPCG(7, 8))}
	d.write(100)
	left := 1 + c.leader()%3
	c.eventually("the node does not have all", func() bool {
		s, err := c.ask(c.leader(), askStatus)
		return err == nil && s.Replicas[uint64(left)].Match == s.Last
	})
	c.killAll()
	dir := string(c.disk(left))

	var out bytes.Buffer
	was := c.token
	require.ErrorIs(t, recoverNode(&recoverOptions{Data: dir}, &out), errNotForced)
	assert.Contains(t, out.String(), "It has the records up to")
	assert.Contains(t, out.String(), ", of term ")
	require.NoError(t, recoverNode(&recoverOptions{Data: dir, Force: true}, &out))
	assert.Contains(t, out.String(), fmt.Sprintf("node %d alone is volume", left))
	text, err := os.ReadFile(filepath.Join(dir, "token"))
	require.NoError(t, err)
	c.token, err = parseToken(string(text))
	require.NoError(t, err)
	require.NotEqual(t, was.Volume, c.token.Volume)
	require.NotEqual(t, was.Subsystem, c.token.Subsystem, "hosts must not take it for the disk of the lost nodes, which may come back")

	c.start(left)
	require.Equal(t, left, c.leader())
	d.h = c.host()
	d.read()
	for id := 4; id <= 5; id++ {
		c.start(id, "--create", "--join")
		require.NoError(t, newOperator(c.ia, c.peers[left-1], &out).add(t.Context(), uint64(id), c.peers[id-1], false))
	}
	d.write(20)
	back := 1 + left%3
	c.start(back)
	c.eventually("no refusal of a node of the volume that was", func() bool {
		s, err := c.ask(left, askStatus)
		for _, r := range s.Refusals {
			if r.Node == uint64(back) {
				require.Contains(t, r.Why, was.Volume.String())
				return true
			}
		}
		require.NoError(t, err)
		return false
	})
	c.kill(back)
	c.kill(left)
	d.write(20)
	d.read()
	c.start(left)
	c.same()
}

func TestARecoverThatIsInterruptedGoesOn(t *testing.T) {
	dir, _ := made(t, small())
	keepOne(t, dir)
	var out bytes.Buffer
	require.NoError(t, recoverNode(&recoverOptions{Data: dir, Force: true}, &out))
	a, err := readAbout(dir)
	require.NoError(t, err)
	for what, lose := range map[string]func(r *recovery) error{
		"no change yet": func(r *recovery) error { return nil },
		"no journal":    func(r *recovery) error { return os.Remove(filepath.Join(dir, "journal")) },
		"no log":        func(r *recovery) error { return os.RemoveAll(filepath.Join(dir, "log")) },
		"half a log":    func(r *recovery) error { return removeAll(filepath.Join(dir, "log", "*.wal")) },
	} {
		a.Volume = uuid(identity.New())
		r := &recovery{a, 1, 1}
		require.NoError(t, writeWhole(filepath.Join(dir, recovering), r))
		require.NoError(t, lose(r))
		_, err := openFiles(dir)
		require.ErrorContains(t, err, "recover was interrupted", what)
		require.NoError(t, recoverNode(&recoverOptions{Data: dir, Force: true}, &out), what)
		require.NoError(t, served(t, dir), what)
	}
}

// interrupted makes a directory one that recover has begun to change.
func interrupted(t *testing.T, dir string) *recovery {
	a, err := readAbout(dir)
	require.NoError(t, err)
	a.Volume = uuid(identity.New())
	r := &recovery{a, 1, 1}
	require.NoError(t, writeWhole(filepath.Join(dir, recovering), r))
	return r
}

func TestARecoverTakesNothingFromWhoHasTheDirectory(t *testing.T) {
	dir, _ := made(t, small())
	f, err := openFiles(dir)
	require.NoError(t, err)
	interrupted(t, dir)
	require.ErrorContains(t, recoverNode(&recoverOptions{Data: dir, Force: true}, &bytes.Buffer{}), "another process serves or recovers")
	require.FileExists(t, filepath.Join(dir, "journal"))
	require.DirExists(t, filepath.Join(dir, "log"))
	require.NoError(t, f.close())
	require.NoError(t, recoverNode(&recoverOptions{Data: dir, Force: true}, &bytes.Buffer{}))
	require.NoError(t, served(t, dir))
}

func TestARecoverThatAnotherOneOvertookChangesNothing(t *testing.T) {
	dir, _ := made(t, small())
	first := interrupted(t, dir)
	require.NoError(t, first.finish(dir))
	require.NoError(t, first.finish(dir), "it is done")
	second := interrupted(t, dir)
	require.ErrorContains(t, first.finish(dir), "another recover")
	require.NoError(t, second.finish(dir))
	require.ErrorContains(t, first.finish(dir), "another recover")
	require.NoError(t, served(t, dir))
}

func TestADirectoryThatWasServedSinceItsRecoverIsNotRecoveredAgain(t *testing.T) {
	dir, _ := made(t, small())
	r := interrupted(t, dir)
	require.NoError(t, r.finish(dir))
	f, err := openFiles(dir)
	require.NoError(t, err)
	require.NoError(t, f.log.Append([]replica.Record{{Index: 2, Term: 1}}))
	require.NoError(t, f.close())
	require.NoError(t, writeWhole(filepath.Join(dir, recovering), r)) // as if its removal had been lost
	require.NoError(t, recoverNode(&recoverOptions{Data: dir, Force: true}, &bytes.Buffer{}))
	f, err = openFiles(dir)
	require.NoError(t, err)
	_, last := f.log.Bounds()
	require.EqualValues(t, 2, last)
	require.NoError(t, f.close())
}

func TestANodeThatIsOpenedWhileARecoverBeginsIsRefused(t *testing.T) {
	dir, _ := made(t, small())
	open := disks.open
	defer func() { disks.open = open }()
	disks.open = func(path string, size int) (store.Store, error) {
		interrupted(t, dir)
		return open(path, size)
	}
	_, err := openFiles(dir)
	require.ErrorContains(t, err, "recover was interrupted")
}

func TestADirectoryThatHasNoDiskOfItsOwnIsNotRecovered(t *testing.T) {
	_, tok := made(t, small())
	o := small()
	o.ID, o.Join, o.Token = 3, true, tok.String()
	o.Peers += ",3=127.0.0.1:7003"
	dir, _ := made(t, o)
	require.ErrorContains(t, recoverNode(&recoverOptions{Data: dir, Force: true}, &bytes.Buffer{}), "never added")
}

func TestStatusCountsCopies(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.three()
	leader := c.leader()
	dead := 1 + leader%3
	follower := 6 - leader - dead
	var out bytes.Buffer
	c.eventually("not three copies", func() bool {
		out.Reset()
		return newOperator(c.ia, c.peers[follower-1], &out).status(t.Context()) == nil
	})
	assert.Contains(t, out.String(), "copies: 3 of 3\n")
	c.kill(dead)
	c.eventually("the copy is not missed", func() bool {
		out.Reset()
		err := newOperator(c.ia, c.peers[follower-1], &out).status(t.Context())
		return exitStatus(err) == exitFewer
	})
	assert.Contains(t, out.String(), fmt.Sprintf("copies: 2 of 3; node %d is ", dead))
	_, err := c.ask(follower, node.Command{Do: "status"})
	require.NoError(t, err)
}

func TestAWrongCommandLineHasAStatusOfItsOwn(t *testing.T) {
	for _, args := range [][]string{
		{"nothing"},
		{"status"},
		{"serve", "--bad"},
		{"status", "127.0.0.1:1", "--token", "abc"},
		{"create", "--data", filepath.Join(t.TempDir(), "x"), "--id", "9", "--peers", "9=here:1"},
	} {
		var out, log bytes.Buffer
		assert.Equal(t, exitUsage, program(args, &out, &log), args)
		assert.Contains(t, log.String(), "volume: ")
	}
}

func TestABackupBecomesAVolumeBesideTheOneThatGoesOn(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.three()
	d := &content{h: c.host(), r: rand.New(rand.NewPCG(21, 22))}
	d.write(50)
	follower := 1 + c.leader()%3
	c.eventually("the node does not have all", func() bool {
		s, err := c.ask(c.leader(), askStatus)
		return err == nil && s.Replicas[uint64(follower)].Match == s.Last
	})
	p := c.running[follower]
	c.signal(follower, syscall.SIGTERM)
	<-p.ended
	delete(c.running, follower)
	backup := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.CopyFS(backup, os.DirFS(string(c.disk(follower)))))
	c.start(follower)
	kept := *d
	d.write(20)

	var out bytes.Buffer
	other := newCluster(t)
	require.NoError(t, recoverNode(&recoverOptions{Data: backup, Force: true, At: other.peers[0]}, &out))
	text, err := os.ReadFile(filepath.Join(backup, "token"))
	require.NoError(t, err)
	other.token, err = parseToken(string(text))
	require.NoError(t, err)
	other.run(1, []string{"serve", "--listen=" + other.listens[0], "--data=" + backup})
	kept.h = other.host()
	kept.read()
	d.read()
	c.same()
}
