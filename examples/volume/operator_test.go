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
	create := func(args ...string) []string {
		return append([]string{"serve", "--create", "--id=1", "--peers=1=127.0.0.1:7001", "--data=" + dir}, args...)
	}
	for why, args := range map[string][]string{
		"the address is \"10.0.0.1\", and not HOST:PORT": {"status", "10.0.0.1"},
		"the address is \":7001\", and not HOST:PORT":    {"check", ":7001"},
		"the address is \"10.0.0.4\"":                    {"add", "10.0.0.1:7000", "4", "10.0.0.4"},
		"a node that lost its disk is another node":      {"replace", "10.0.0.1:7000", "4", "4", "10.0.0.4:7000"},
		"--listen: \"10.0.0.1\" is not HOST:PORT":        create("--listen=10.0.0.1"),
		"--listen: \"\" is not HOST:PORT":                create("--listen="),
		"--listen: \"h:99999\" is not HOST:PORT":         create("--listen=h:99999"),
		"--metrics: \"9100\" is not HOST:PORT":           create("--metrics=9100"),
		"--inspect: \"x\" is not HOST:PORT":              create("--inspect=x"),
		"--elsewhere: \"x\" is not HOST:PORT":            create("--elsewhere=x"),
		"--advertise: \":1\" is not HOST:PORT":           create("--advertise=:1"),
		"--tick 5ms":                                     create("--tick=5ms"),
		"--tls and --plain are two ways":                 create("--tls", "--plain"),
		"--tls-key and --tls-ca go together":             create("--tls-cert=x"),
		"there is no such file":                          create("--token=tokn"),
	} {
		text, exit := said(args...)
		assert.Equal(t, exitUsage, exit, "%s: %s", why, text)
		assert.Contains(t, text, why)
		assert.NoDirExists(t, dir, why)
	}
	text, exit := said(create("--provider=none")...)
	assert.Equal(t, exitFailed, exit)
	assert.Contains(t, text, "provider not found")
	assert.NoDirExists(t, dir)
	text, exit = said("--version")
	assert.Zero(t, exit)
	assert.Contains(t, text, "directories are of format 2")
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
	stranger := newToken(1)
	stranger.Secret = secure.NewSecret()
	for why, args := range map[string][]string{
		"the token, or --tls-cert and so on, is of another volume":                               {c.peers[0], "--token=" + stranger.String()},
		"nobody listens there: look whether the node runs":                                       {c.peers[6], "--token=" + own},
		"does not speak TLS between nodes: give an address of --peers, and not that of --listen": {c.listens[0], "--token=" + own},
		"give an address of --peers, and not that of --listen, which is for hosts":               {c.listens[0]},
		"nodes with certificates answer only those who give --token":                             {c.peers[0]},
	} {
		text, exit := said(append([]string{"status"}, args...)...)
		assert.Equal(t, exitFailed, exit, text)
		assert.Contains(t, text, why)
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
	for _, addr := range []string{freePort(t), closes.Addr().String(), "no.such.host.invalid:7000"} {
		text, exit := said("status", addr)
		assert.Equal(t, exitFailed, exit)
		assert.Contains(t, text, "volume: "+addr+": ")
		for _, word := range []string{"runtime.", "found here", "godat:", "Dial"} {
			assert.NotContains(t, text, word)
		}
	}
	require.NoError(t, closes.Close())
	<-ended
}
