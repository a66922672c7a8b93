package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/examples/nvmeof/identity"
	"godat/examples/volume/fault"
	"godat/examples/volume/node"
	"godat/examples/volume/raftlog"
	_ "godat/hw/iwarp"
	dat "godat/runtime"
)

// asProgram has the arguments of a test process that is the program.
const asProgram = "VOLUME_TEST_ARGS"

func TestMain(m *testing.M) {
	if text := os.Getenv(asProgram); text != "" {
		var args []string
		if err := json.Unmarshal([]byte(text), &args); err != nil {
			panic(err)
		}
		if proxy := os.Getenv(throughProxy); proxy != "" {
			suffer(proxy)
		}
		os.Exit(program(args, os.Stdout, os.Stderr))
	}
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", atOnce); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

// atOnce is how many tests run at a time if no flag says it: for most of their time they wait for nodes.
const atOnce = "4"

// patience is what a test waits for what comes soon on a quiet machine.
const patience = 3 * time.Minute

// cluster is a volume of three processes, and perhaps more, on one machine.
type cluster struct {
	testing.TB
	ia      *dat.IA
	between *dat.IA // to nodes: ia, or one over TLS
	dir     string
	peers   []string // addresses, by id from 1
	listens []string
	token   token
	running map[int]*process
	started []*process
	hosts   []*multipath
	proxy   *proxy // between the nodes, or nil
	program string // of nodes that are started from now on, or empty: this one
}

type process struct {
	*exec.Cmd
	id    int
	log   bytes.Buffer  // to be read when it has ended
	ended chan struct{} // closed then
}

// wait waits for the end.
func (p *process) wait() {
	defer close(p.ended)
	_ = p.Wait()
}

// most is how many nodes a test's cluster ever has.
const most = 8

func newCluster(t testing.TB) *cluster {
	ia, err := dat.Open(t.Context(), "iwarp")
	require.NoError(t, err)
	c := &cluster{TB: t, ia: ia, between: ia, dir: t.TempDir(), token: newToken(1), running: make(map[int]*process)}
	for range most {
		c.peers, c.listens = append(c.peers, freePort(t)), append(c.listens, freePort(t))
	}
	t.Cleanup(c.end)
	return c
}

// newToken is a token of a test's volume.
func newToken(namespace uint32) token {
	t := token{Volume: identity.New(), Size: diskLen, SlotSize: 64 << 10, Slots: 8, Namespace: namespace}
	t.Subsystem = t.Volume
	return t
}

// founders are the first three nodes, as an option has them.
func (c *cluster) founders() string {
	all := make(raftlog.Members)
	for i, addr := range c.peers[:3] {
		all[uint64(i+1)] = raftlog.Member{Addr: addr}
	}
	return strings.Join(addresses(all), ",")
}

// tokenText is the volume's token.
func (c *cluster) tokenText() string {
	t := c.token
	t.Peers = crc32.ChecksumIEEE([]byte(c.founders()))
	return t.String()
}

// freePort is a port of an address that no other test has.
func freePort(t testing.TB) string {
	host := netip.AddrFrom4([4]byte{127, byte(1 + rand.IntN(250)), byte(rand.IntN(250)), byte(1 + rand.IntN(250))})
	l, err := net.Listen("tcp", netip.AddrPortFrom(host, 0).String())
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return l.Addr().String()
}

// end kills all, and shows their logs if the test has failed.
func (c *cluster) end() {
	if c.Failed() {
		for id := range c.running {
			s, err := c.ask(id, askStatus)
			c.Logf("node %d: %+v %v", id, s, err)
		}
	}
	c.killAll()
	for _, p := range c.started {
		if c.Failed() {
			c.Logf("node %d:\n%s", p.id, p.log.String())
		}
	}
	if c.between != c.ia {
		require.NoError(c, c.between.Close())
	}
	require.NoError(c, c.ia.Close())
}

// slogTo is a logger of text.
func slogTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// killAll ends all nodes.
func (c *cluster) killAll() {
	for id := range c.running {
		c.kill(id)
	}
}

// three starts three nodes of a new volume.
func (c *cluster) three() {
	for id := 1; id <= 3; id++ {
		c.start(id, "--create")
	}
}

// start starts a node.
func (c *cluster) start(id int, args ...string) {
	var peers []string
	for i := range max(3, id) {
		peers = append(peers, fmt.Sprintf("%d=%s", i+1, c.peers[i]))
	}
	if slices.Contains(args, "--create") {
		args = append(args, "--peers="+strings.Join(peers, ","), "--token="+c.tokenText())
	}
	args = append([]string{"serve"}, args...)
	args = append(args, fmt.Sprintf("--id=%d", id), "--listen="+c.listens[id-1], "--data="+string(c.disk(id)))
	c.run(id, args)
}

// run starts a process.
func (c *cluster) run(id int, args []string) {
	if c.proxy != nil {
		args = append(args, "--provider="+suffering)
	}
	text, err := json.Marshal(args)
	require.NoError(c, err)
	p := &process{id: id, Cmd: exec.Command(os.Args[0]), ended: make(chan struct{})}
	if c.program != "" {
		p.Cmd = exec.Command(c.program, args...)
	}
	p.Env = append(os.Environ(), asProgram+"="+string(text), "GOMAXPROCS=2")
	if c.proxy != nil {
		p.Env = append(p.Env, throughProxy+"="+c.proxy.name(id))
	}
	p.Stdout, p.Stderr = &p.log, &p.log
	require.NoError(c, p.Start())
	go p.wait()
	c.started = append(c.started, p)
	c.running[id] = p
}

// kill is kill -9.
func (c *cluster) kill(id int) {
	p := c.running[id]
	delete(c.running, id)
	_ = p.Process.Kill()
	<-p.ended
}

// disk is a node's directory.
func (c *cluster) disk(id int) fault.Disk { return fault.Disk(filepath.Join(c.dir, fmt.Sprint(id))) }

func (c *cluster) signal(id int, s syscall.Signal) {
	require.NoError(c, c.running[id].Process.Signal(s))
}

// ask asks a node.
func (c *cluster) ask(id int, command node.Command) (node.Status, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	command.Volume = c.token.Volume.String()
	return node.Ask(ctx, c.between, c.peers[id-1], command)
}

// leader waits for a node that serves the disk.
func (c *cluster) leader() (leader int) {
	c.eventually("nobody leads", func() bool {
		for id := range c.running {
			if s, err := c.ask(id, node.Command{Do: "status"}); err == nil && s.State == "optimized" {
				leader = id
				return true
			}
		}
		return false
	})
	return leader
}

// eventually waits until a condition holds.
func (c *cluster) eventually(otherwise string, holds func() bool) {
	c.Helper()
	require.Eventually(c, holds, patience, 20*time.Millisecond, otherwise)
}

// same waits until all nodes have all that the leader has, and compares their disks.
func (c *cluster) same() {
	var out bytes.Buffer
	c.eventually("no check", func() bool {
		out.Reset()
		err := newOperator(c.between, c.peers[c.leader()-1], &out).check(context.Background())
		require.NotErrorIs(c, err, errDiffer, out.String())
		return err == nil
	})
}
