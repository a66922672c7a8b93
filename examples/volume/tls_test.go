package main

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/volume/node"
	"godat/examples/volume/secure"
	dat "godat/runtime"
)

// secured makes the cluster's nodes have certificates, and the test an operator of its volume.
func (c *cluster) secured() {
	c.token.Secret = secure.NewSecret()
	own, err := c.token.Secret.Issue(c.token.Volume.String(), "an operator")
	require.NoError(c, err)
	c.between = over(c, own)
}

// over is an adapter of iWARP over TLS.
func over(t testing.TB, c *secure.Credentials) *dat.IA {
	ia, err := dat.Open(t.Context(), "iwarp", dat.WithProvider(c.Provider(nil)))
	require.NoError(t, err)
	return ia
}

func TestNodesWithCertificatesTakeNothingOfStrangers(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.secured()
	c.three()
	leader := c.leader()
	d := &content{h: c.host(), r: rand.New(rand.NewPCG(13, 14))}
	d.write(20)

	refused := func(ia *dat.IA, why string) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := node.Ask(ctx, ia, c.peers[leader-1], askStatus)
		require.Error(t, err)
		c.eventually("nothing says "+why, func() bool {
			s, err := c.ask(leader, askStatus)
			for _, r := range s.Refusals {
				if r.Here && strings.Contains(r.Why, why) {
					return true
				}
			}
			require.NoError(t, err)
			return false
		})
	}
	refused(c.ia, "does not speak TLS")
	other, err := secure.NewSecret().Issue("another", "node 2")
	require.NoError(t, err)
	strange := over(t, other)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = node.Ask(ctx, strange, c.peers[leader-1], askStatus)
	require.ErrorContains(t, err, `and this end trusts "volume another"`)
	require.NoError(t, strange.Close())

	// A node of the volume whose certificate another authority has made.
	follower := 1 + leader%3
	c.kill(follower)
	require.NoError(t, other.Save(filepath.Join(string(c.disk(follower)), "tls")))
	c.start(follower)
	c.eventually("the node says nothing of the wrong authority", func() bool {
		s, err := c.ask(leader, askStatus)
		require.NoError(t, err)
		for _, r := range s.Refusals {
			if strings.Contains(r.Why, "does not take this end's certificate") || strings.Contains(r.Why, `is by "volume another"`) {
				return true
			}
		}
		return false
	})
	d.write(20)
	d.read()

	// A command without the token says what is missing; with it, it is done.
	var out, log bytes.Buffer
	require.Equal(t, exitFailed, program([]string{"status", c.peers[leader-1]}, &out, &log))
	require.Contains(t, log.String(), "--token")
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(c.tokenText()), 0o600))
	require.Equal(t, exitFewer, program([]string{"status", c.peers[leader-1], "--token", file}, &out, &log), log.String())
	require.Contains(t, out.String(), "copies: 2 of 3")
}

func TestARollingRestartWithCertificatesLosesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.secured()
	c.three()
	d := &content{h: c.host(), r: rand.New(rand.NewPCG(15, 16))}
	for id := 1; id <= 3; id++ {
		d.write(20)
		c.kill(id)
		d.write(10)
		c.start(id)
		c.eventually("not three copies", func() bool {
			return newOperator(c.between, c.peers[id-1], io.Discard).status(t.Context()) == nil
		})
	}
	d.read()
	c.same()
}

func TestAVolumeOfSeveralMachinesHasCertificates(t *testing.T) {
	dir := func() string { return filepath.Join(t.TempDir(), "node") }
	o := small()
	local, err := create(t.Context(), o, dir())
	require.NoError(t, err)
	assert.False(t, local.secures(), "all nodes are on this machine")
	o = small()
	o.TLS = true
	asked, err := create(t.Context(), o, dir())
	require.NoError(t, err)
	assert.True(t, asked.secures())
	o = small()
	o.Peers = "1=10.0.0.1:7000,2=10.0.0.2:7000"
	at := dir()
	apart, err := create(t.Context(), o, at)
	require.NoError(t, err)
	assert.True(t, apart.secures())
	again, err := parseToken(apart.String())
	require.NoError(t, err)
	assert.Equal(t, apart, again)
	_, err = secure.LoadDir(filepath.Join(at, "tls"))
	require.NoError(t, err)
	o.Plain = true
	plain, err := create(t.Context(), o, dir())
	require.NoError(t, err)
	assert.False(t, plain.secures())
	o.Token = apart.String()
	_, err = create(t.Context(), o, dir())
	require.ErrorContains(t, err, "the token says it")
	var log, out bytes.Buffer
	require.Equal(t, exitUsage, program([]string{"status", "here:1", "--tls-ca", "x"}, &out, &log))
	require.Contains(t, log.String(), "go together")
}

func TestNodesWithoutCertificatesSayWhatThatMeans(t *testing.T) {
	var log bytes.Buffer
	logger := slogTo(&log)
	o := small()
	o.Plain, o.Peers = true, "1=10.0.0.1:7000"
	dir, _ := made(t, o)
	all, err := openAll([]string{dir})
	require.NoError(t, err)
	all.warn(nil, logger)
	require.Equal(t, 1, strings.Count(log.String(), "may read the disk, change the members, and end the volume"))
	require.NoError(t, all.close())
	log.Reset()
	here, _ := made(t, small())
	all, err = openAll([]string{here})
	require.NoError(t, err)
	all.warn(nil, logger)
	require.Empty(t, log.String())
	require.NoError(t, all.close())
}

func TestASecretTokenIsNotPrinted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "node")
	args := []string{"create", "--id=1", "--peers=1=127.0.0.1:7001", "--data=" + dir, "--size=1M", "--slots=1", "--slot-size=64K"}
	text, exit := said(append(args, "--tls")...)
	require.Zero(t, exit, text)
	keepOne(t, dir)
	again, exit := said("recover", dir, "--at=127.0.0.1:7002", "--force")
	require.Zero(t, exit, again)
	for _, x := range []string{text, again} {
		require.Contains(t, x, "--token "+filepath.Join(dir, "token")+", a file that is secret")
		for word := range strings.FieldsSeq(x) {
			_, err := parseToken(strings.Trim(word, ","))
			require.Error(t, err, word)
		}
	}
}
