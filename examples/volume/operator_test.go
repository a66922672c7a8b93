package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/volume/secure"
)

// said runs the program to its end, and returns what it says, and its status.
func said(args ...string) (text string, exit int) {
	var out, log bytes.Buffer
	exit = program(args, &out, &log)
	return out.String() + log.String(), exit
}

func TestACommandLineThatCantBeMeantIsRefusedBeforeAnythingIsDone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "node")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	there, tok := made(t, small())
	was, err := os.ReadFile(filepath.Join(there, "volume.json"))
	require.NoError(t, err)
	const at = "10.0.0.1:7000"
	create := func(args ...string) []string {
		if !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--listen") }) {
			args = append(args, "--listen=127.0.0.1:0")
		}
		return append([]string{"serve", "--create", "--id=1", "--peers=1=127.0.0.1:7001", "--data=" + dir}, args...)
	}
	with := func(peers string) []string { return []string{"create", "--id=1", "--peers=" + peers, "--data=" + dir} }
	for _, line := range []struct {
		why  string
		args []string
	}{
		{`the address is "10.0.0.1", and not HOST:PORT`, []string{"status", "10.0.0.1"}},
		{`the address is ":7001", and not HOST:PORT`, []string{"check", ":7001"}},
		{`the address is "10.0.0.1:99999", and a port is 1 to 65535`, []string{"check", "10.0.0.1:99999"}},
		{`the address is "10.0.0.1:0", and a port is 1 to 65535`, []string{"status", "10.0.0.1:0"}},
		{`the address is "0.0.0.0:7000", at which nobody is reached`, []string{"status", "0.0.0.0:7000"}},
		{"addr is empty", []string{"status", ""}},
		{`the address is "10.0.0.4"`, []string{"add", at, "4", "10.0.0.4"}},
		{`the address is "[::]:7000", at which nobody is reached`, []string{"add", at, "4", "[::]:7000"}},
		{"id 9; it may be 1 to 8", []string{"add", at, "9", "10.0.0.4:7000"}},
		{"id 0; it may be 1 to 8", []string{"add", at, "0", "10.0.0.4:7000"}},
		{"id 9; it may be 1 to 8", []string{"transfer", at, "9"}},
		{"id 9; it may be 1 to 8", []string{"remove", at, "9"}},
		{"unknown flag -1", []string{"transfer", at, "-1"}},
		{"old 0; it may be 1 to 8", []string{"replace", at, "0", "4", "10.0.0.4:7000"}},
		{"id 9; it may be 1 to 8", []string{"replace", at, "3", "9", "10.0.0.4:7000"}},
		{"a node that lost its disk is another node", []string{"replace", at, "4", "4", "10.0.0.4:7000"}},
		{"--token is empty", []string{"status", at, "--token="}},
		{"--token is given twice", []string{"status", at, "--token", tok.String(), "--token", tok.String()}},
		{"--provider loop is memory of one process", []string{"status", "127.0.0.1:7001", "--provider=loop"}},
		{"--provider none: provider \"none\"; registered: ", []string{"status", "127.0.0.1:7001", "--provider=none"}},
		{"--tls-key and --tls-ca go together", []string{"status", at, "--tls-cert=x"}},

		{"--id 0; it may be 1 to 8", []string{"serve", "--id=0", "--data=" + there}},
		{"--id 9; it may be 1 to 8", []string{"create", "--id=9", "--peers=9=127.0.0.1:7001", "--data=" + dir}},
		{"--id is missing", []string{"create", "--peers=1=127.0.0.1:7001", "--data=" + dir}},
		{"nodes 1 and 2 have one address", with("1=127.0.0.1:7001,2=127.0.0.1:7001")},
		{"nodes 1 and 2 have one address", with("1=HERE:7001,2=here:07001")},
		{"nodes 1 and 2 have one address", with("1=[::1]:7001,2=[0:0::1]:7001")},
		{`node 1: the address is "0.0.0.0:7001", at which nobody is reached`, with("1=0.0.0.0:7001")},
		{"a port is 1 to 65535", with("1=127.0.0.1:0")},
		{"a port is 1 to 65535", with("1=127.0.0.1:99999")},
		{"node 9; there may be 1 to 8", with("1=127.0.0.1:7001,9=127.0.0.1:7002")},
		{"node 2 twice", with("2=127.0.0.1:7001,2=127.0.0.1:7002")},
		{"--token is empty", create("--token=")},
		{"there is no such file", create("--token=tokn")},
		{"--join is for a node of a volume that is there", create("--join")},
		{"--beside wants a --namespace", create("--beside=" + tok.String())},
		{"1 is that of the token's volume", create("--beside="+tok.String(), "--namespace=1")},
		{"--beside is empty", create("--beside=", "--namespace=2")},
		{"--id is given twice", create("--id=1")},
		{"--peers is given twice", create("--replicas=1=127.0.0.1:7002")},
		{"--size is given twice", create("--size=1G", "--size=2G")},
		{"--size is empty", create("--size=")},
		{"--slot-size is empty", create("--slot-size=")},
		{"--slots 0; it may be 1 or more", create("--slots=0")},
		{"--slots -1; it may be 1 or more", create("--slots=-1")},
		{"--slots 999999999 and --slot-size 1048576", create("--slots=999999999")},
		{"--namespace 0; it may be 1 to 128", create("--namespace=0")},
		{"--namespace 129; it may be 1 to 128", create("--namespace=129")},
		{"--name is empty", create("--name=")},
		{"--tick 5ms", create("--tick=5ms")},
		{"--tick: expected", create("--tick=")},
		{"--tls and --plain are two ways", create("--tls", "--plain")},
		{"--tls-key and --tls-ca go together", create("--tls-cert=x")},
		{"--tls-ca is empty", create("--tls-ca=")},
		{"--tls-cert, --tls-key and --tls-ca: open " + dir, create("--tls-ca="+dir, "--tls-key="+dir, "--tls-cert="+dir)},
		{"--data is empty", []string{"create", "--id=1", "--peers=1=127.0.0.1:7001", "--data="}},
		{"--data is empty", []string{"serve", "--data", ""}},
		{"--data has " + there + " twice", []string{"serve", "--data=" + there, "--data=" + there + "/"}},
		{"look whether this is a node's directory", []string{"serve", "--data=" + dir}},
		{"look whether this is a node's directory", []string{"serve", "--data=" + file}},
		{`--listen: the address is "10.0.0.1", and not HOST:PORT`, create("--listen=10.0.0.1")},
		{"--listen is empty", create("--listen=")},
		{`--listen: the address is "h:99999", and a port is 0 to 65535`, create("--listen=h:99999")},
		{"--listen: 192.0.2.1 is no address of this machine", create("--listen=192.0.2.1:4420")},
		{`--metrics: the address is "9100", and not HOST:PORT`, create("--metrics=9100")},
		{"--metrics is empty", create("--metrics=")},
		{"--metrics: 192.0.2.1 is no address of this machine", create("--metrics=192.0.2.1:9100")},
		{"--metrics: no.such.invalid is no address of this machine", create("--metrics=no.such.invalid:9100")},
		{"--listen and --metrics have one address", create("--listen=127.0.0.1:4420", "--metrics=127.0.0.1:4420")},
		{`--inspect: the address is "x", and not HOST:PORT`, create("--inspect=x")},
		{"--inspect is empty", create("--inspect=")},
		{"--inspect: 192.0.2.1 is no address of this machine", create("--inspect=192.0.2.1:6060")},
		{"--traces is for visitors of the page", create("--traces=" + dir)},
		{"--traces: " + file + " is a file", create("--inspect=127.0.0.1:0", "--traces="+file)},
		{`--elsewhere: the address is "x", and not HOST:PORT`, create("--elsewhere=x")},
		{`--elsewhere: the address is "0.0.0.0:4420", at which nobody is reached`, create("--elsewhere=0.0.0.0:4420")},
		{`--advertise: the address is ":1", and not HOST:PORT`, create("--advertise=:1")},
		{"a port is 1 to 65535", create("--advertise=10.0.0.1:0")},
		{"--provider none: provider \"none\"; registered: ", create("--provider=none")},
		{"--provider: 192.0.2.1 is no address of this machine", create("--provider=iwarp:192.0.2.1")},
		{`--provider iwarp:no.such.invalid: "no.such.invalid" is no address`, create("--provider=iwarp:no.such.invalid")},
		{"--provider loop is memory of one process", create("--provider=loop")},

		{"--at is empty", []string{"recover", there, "--at=", "--force"}},
		{"--at: the address is \"0.0.0.0:1\", at which nobody", []string{"recover", there, "--at=0.0.0.0:1", "--force"}},
		{"--beside: the token's volume has namespace 1, as the new one", []string{"recover", there, "--beside=" + tok.String(), "--force"}},
		{"--force is given twice", []string{"recover", there, "--force", "--force"}},
		{"data is empty", []string{"recover", ""}},
		{"look whether this is a node's directory", []string{"recover", dir}},
	} {
		text, exit := said(line.args...)
		assert.Equal(t, exitUsage, exit, "%s: %s: %s", line.why, line.args, text)
		assert.Contains(t, text, line.why, line.args)
		assert.Equal(t, 1, strings.Count(text, "\n"), text)
		assert.NotContains(t, text, "serves hosts", line.args)
		require.NoDirExists(t, dir, line.args)
	}
	is, err := os.ReadFile(filepath.Join(there, "volume.json"))
	require.NoError(t, err)
	require.Equal(t, string(was), string(is))
	text, exit := said("--version")
	assert.Zero(t, exit)
	assert.Contains(t, text, "directories are of format 2")
}

func TestANodeIsMadeInAnEmptyDirectoryAlone(t *testing.T) {
	create := func(dir string) (string, int) {
		return said("create", "--id=1", "--peers=1=127.0.0.1:7001", "--data="+dir, "--size=1M", "--slots=1", "--slot-size=64K")
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "hosts"), nil, 0o600))
	there, _ := made(t, small())
	file := filepath.Join(dir, "hosts")
	for dir, why := range map[string]string{
		dir:                         dir + " is not empty: hosts is there",
		there:                       "it has a volume already",
		file:                        file + " is a file",
		filepath.Join(file, "node"): "not a directory",
	} {
		text, exit := create(dir)
		assert.Equal(t, exitUsage, exit, text)
		assert.Contains(t, text, "--data: ", dir)
		assert.Contains(t, text, why)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)

	fresh := t.TempDir() // a new file system
	require.NoError(t, os.Mkdir(filepath.Join(fresh, "lost+found"), 0o700))
	text, exit := create(fresh)
	require.Zero(t, exit, text)
}

func TestServeRefusesByNameWhatADirectoryIsNotMadeWith(t *testing.T) {
	dir, tok := made(t, small())
	_, other := made(t, small())
	for why, arg := range map[string]string{
		"--id: 2 here, 1 there":                       "--id=2",
		"--size: 2097152 here, 1048576 there":         "--size=2M",
		"--slots: 2 here, 1 there":                    "--slots=2",
		"--slot-size: 131072 here, 65536 there":       "--slot-size=128K",
		"--namespace: 2 here, 1 there":                "--namespace=2",
		"--peers: 1=127.0.0.1:7009 here, 1=127.":      "--peers=1=127.0.0.1:7009",
		"--token: of volume " + other.Volume.String(): "--token=" + other.String(),
		"--join: true here, false there":              "--join",
		"--tls: true here, false there":               "--tls",
		"--beside is for --create":                    "--beside=" + tok.String(),
		`--name: "x" here, "" there`:                  "--name=x",
	} {
		text, exit := said("serve", "--data="+dir, "--listen=127.0.0.1:0", arg)
		assert.Equal(t, exitUsage, exit, "%s: %s", why, text)
		assert.Contains(t, text, why)
	}
	a, err := readAbout(dir)
	require.NoError(t, err)
	differ, err := a.differ(&volumeOptions{
		ID: 1, Size: "1024K", Slots: 1, SlotSize: "64K", Namespace: 1, Peers: "2=127.0.0.1:7002,1=127.0.0.1:7001", Token: filepath.Join(dir, "token"), Plain: true,
	}, false)
	require.NoError(t, err)
	require.Empty(t, differ, "what it was made with")
}

func TestATokenIsAFileAlsoWithoutASlash(t *testing.T) {
	dir, tok := made(t, small())
	t.Chdir(dir)
	got, err := tokenOf("token")
	require.NoError(t, err)
	require.Equal(t, tok, got)
	require.NoError(t, os.WriteFile("damaged", []byte(tok.String()[1:]), 0o600))
	_, err = tokenOf("damaged")
	require.ErrorContains(t, err, "the file damaged: it is no token")
}

func TestADirectoryKeepsItsTick(t *testing.T) {
	o := small()
	tick := 250 * time.Millisecond
	o.Tick = &tick
	dir, _ := made(t, o)
	f, err := openFiles(dir)
	require.NoError(t, err)
	require.Equal(t, tick, f.about.Tick)
	require.NoError(t, volumes{f}.keepTick(2*tick))
	require.NoError(t, f.close())
	a, err := readAbout(dir)
	require.NoError(t, err)
	require.Equal(t, 2*tick, a.Tick)
}

func TestASecondNodeWithoutATokenMakesNoVolume(t *testing.T) {
	t.Parallel()
	for _, tls := range []bool{false, true} {
		c := newCluster(t)
		first := string(c.disk(1))
		args := []string{"serve", "--create", "--id=1", "--peers=" + c.founders(), "--listen=" + c.listens[0], "--data=" + first, "--size=1M", "--slots=1", "--slot-size=64K"}
		if tls {
			args = append(args, "--tls")
		}
		c.run(1, args)
		dir := string(c.disk(2))
		again := func(args ...string) (string, int) {
			return said(append([]string{"create", "--id=2", "--peers=" + c.founders(), "--data=" + dir}, args...)...)
		}
		var text string
		c.eventually("the other volume is made", func() bool {
			if text != "" {
				require.NoError(t, os.RemoveAll(dir)) // the first node did not listen yet
			}
			var exit int
			text, exit = again("--size=1M", "--slots=1", "--slot-size=64K")
			return exit == exitUsage
		})
		require.NoDirExists(t, dir)
		require.Contains(t, text, c.peers[0])
		require.Contains(t, text, "would make another volume: give the same command with --token")
		b, err := os.ReadFile(filepath.Join(first, "token"))
		require.NoError(t, err)
		if tls {
			require.NotContains(t, text, strings.TrimSpace(string(b)), "the token is a secret")
		} else {
			require.Contains(t, text, strings.TrimSpace(string(b)))
		}
		text, exit := again("--token=" + filepath.Join(first, "token"))
		require.Zero(t, exit, text)
	}
}

func TestANodeThatFindsItsAddressOrItsDirectoryTakenSaysWhatToDo(t *testing.T) {
	l, err := net.Listen("tcp", freePort(t))
	require.NoError(t, err)
	defer l.Close()
	o := small()
	o.Peers = "1=" + l.Addr().String()
	dir, _ := made(t, o)
	text, exit := said("serve", "--data="+dir, "--listen="+freePort(t))
	require.Equal(t, exitFailed, exit)
	require.Contains(t, text, fmt.Sprintf("another program listens at %s, which is this node's address for the other nodes", l.Addr()))
	text, exit = said("serve", "--data="+dir, "--listen="+l.Addr().String())
	require.Equal(t, exitFailed, exit)
	require.Contains(t, text, "or give another --listen")
	require.NotContains(t, text, "port 0")
	dir, _ = made(t, &volumeOptions{ID: 1, Peers: "1=" + freePort(t), Size: "1M", Slots: 1, SlotSize: "64K"})
	text, _ = said("serve", "--data="+dir, "--listen=127.0.0.1:0", "--metrics="+l.Addr().String())
	require.Contains(t, text, "or give another --metrics")
	require.NotContains(t, text, "serves hosts")
	text, _ = said("serve", "--data="+dir, "--listen=127.0.0.1:0", "--inspect="+l.Addr().String())
	require.Contains(t, text, "or give another --inspect")
	f, err := openFiles(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.close()) }()
	for _, args := range [][]string{{"serve", "--data=" + dir}, {"recover", dir}} {
		text, exit = said(args...)
		require.Equal(t, exitFailed, exit)
		require.Contains(t, text, "another process serves or recovers this directory")
	}
}

func TestRecoverDoesNotMakeAnotherVolumeOfANodeThatIsAlone(t *testing.T) {
	dir, _ := made(t, small())
	keepOne(t, dir)
	text, exit := said("recover", dir)
	require.Equal(t, exitFailed, exit)
	require.Contains(t, text, "nothing was changed")
	_, exit = said("recover", dir, "--force")
	require.Zero(t, exit)
	was, err := readAbout(dir)
	require.NoError(t, err)
	text, exit = said("recover", dir, "--force")
	require.Equal(t, exitFailed, exit)
	require.Contains(t, text, "it has its majority: serve it")
	now, err := readAbout(dir)
	require.NoError(t, err)
	require.Equal(t, was, now)
	_, exit = said("recover", dir, "--force", "--at=127.0.0.1:7009")
	require.Zero(t, exit, "a backup of it is restored")
}

func TestAnOperatorWhoGivesAWrongAddressOrTokenIsToldWhich(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.secured()
	c.three()
	c.leader()
	own := c.tokenText()
	stranger, plain := newToken(1), newToken(1)
	stranger.Secret = secure.NewSecret()
	for why, args := range map[string][]string{
		"the token, or --tls-cert and so on, is of another volume":                               {c.peers[0], "--token=" + stranger.String()},
		"nobody listens there: look whether the node runs":                                       {c.peers[6], "--token=" + own},
		"does not speak TLS between nodes: give an address of --peers, and not that of --listen": {c.listens[0], "--token=" + own},
		"give an address of --peers, and not that of --listen, which is for hosts":               {c.listens[0]},
		"nodes with certificates answer only those who give --token":                             {c.peers[0]},
		"the token is of a volume whose nodes have no certificates":                              {c.peers[0], "--token=" + plain.String()},
	} {
		text, exit := said(append([]string{"status"}, args...)...)
		assert.Equal(t, exitFailed, exit, text)
		assert.Contains(t, text, why)
	}
	for _, args := range [][]string{{"check", c.listens[0]}, {"add", c.listens[0], "4", c.peers[3]}, {"transfer", c.listens[0], "2"}} {
		begun := time.Now()
		text, exit := said(args...)
		assert.Equal(t, exitFailed, exit, text)
		assert.Contains(t, text, c.listens[0]+": what listens there is no port between nodes", args)
		assert.Less(t, time.Since(begun), mostWait, "nothing makes that better")
	}
}

func TestACommandSaysWithinTwoSecondsWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.three()
	leader := c.leader()
	left := 1 + leader%3
	for id := 1; id <= 3; id++ {
		if id != left {
			c.kill(id)
		}
	}
	for name, command := range map[string]func(context.Context, *operator) error{
		"transfer": func(ctx context.Context, o *operator) error { return o.transfer(ctx, 2) },
		"remove":   func(ctx context.Context, o *operator) error { return o.remove(ctx, 2, false) },
		"check":    func(ctx context.Context, o *operator) error { return o.check(ctx) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		said := &spoken{on: cancel}
		o := newOperator(c.ia, c.peers[left-1], io.Discard)
		o.log = said
		begun := time.Now()
		err := command(ctx, o)
		cancel()
		require.ErrorIs(t, err, errNobody, name)
		assert.Contains(t, said.text.String(), fmt.Sprintf("volume: waiting: nobody leads: node %d at %s", left, c.peers[left-1]), name)
		assert.Contains(t, said.text.String(), "nobody listens there", name)
		assert.Less(t, time.Since(begun), patience/2, name) // 2 s on a quiet machine
	}
}

// spoken is what is written. It calls on then.
type spoken struct {
	text bytes.Buffer
	on   func()
}

// Write implements io.Writer.
func (s *spoken) Write(b []byte) (int, error) {
	defer s.on()
	return s.text.Write(b)
}

func TestAnOperatorSaysOnceForWhatItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		o := newOperator(nil, "", io.Discard)
		o.log = &log
		wait := func(err error) {
			o.say(err)
			time.Sleep(sayAgain)
		}
		first, second := errors.New("nobody leads"), errors.New("nobody listens")
		for _, err := range []error{first, first, first, second, second, nil, second, second} {
			wait(err)
		}
		require.Equal(t, []string{
			"volume: waiting: nobody leads", "volume: waiting: for the same",
			"volume: waiting: nobody listens", "volume: waiting: for the same",
			"volume: waiting: nobody listens",
		}, strings.Split(strings.TrimSpace(log.String()), "\n"))
	})
}

func TestNoCommandSpeaksInTheLibrarysWords(t *testing.T) {
	closes, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := closes.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			_ = c.Close()
		}
	}()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	for addr, certificates := range map[string]bool{
		freePort(t): false, closes.Addr().String(): true, silent.Addr().String(): false, "no.such.host.invalid:7000": false,
	} {
		text, exit := said("status", addr)
		assert.Equal(t, exitFailed, exit)
		assert.Contains(t, text, "volume: "+addr+": ")
		assert.Equal(t, certificates, strings.Contains(text, "certificates"), text)
		for _, word := range []string{"runtime.", "found here", "godat:", "Dial"} {
			assert.NotContains(t, text, word)
		}
	}
	require.NoError(t, closes.Close())
	<-ended
}
