package conformance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	dat "godat/runtime"
)

var processCases = []Case{
	{ID: "CO-12", Claim: "a peer process that is killed ends its connections, and everything is flushed", needs: needs(processes), run: func(r *rig) {
		p := r.process()
		e := r.node().end()
		require.NoError(r, e.ep.Connect(*p.at))
		e.established()
		e.sends(1, 8)
		e.receives(3)
		woken := r.asleep(e.recv)
		p.kill()
		w := <-woken
		require.NoError(r, w.err, "the waiter is woken")
		assert.EqualValues(r, 0, w.ev.Cookie)
		assert.Equal(r, hw.StatusFlushed, w.ev.Status)
		for i := uint64(1); i < 3; i++ {
			e.done(e.recv, i, hw.StatusFlushed)
		}
		ev := e.rig.next(e.conn)
		assert.Contains(r, []event.Number{event.Broken, event.Disconnected}, ev.Number)
		assert.Equal(r, ep.Disconnected, e.ep.State())
		e.postSend(2, 8)
		e.done(e.req, 2, hw.StatusFlushed)
		require.NoError(r, e.ep.Reset())
		e.fails(*p.at, event.NonPeerRejected)
	}},
}

// processes: the provider connects two processes of the host.
var processes = &capability{"processes", func(r *rig) bool {
	p := r.process()
	if p.at == nil {
		return false
	}
	// The other process listens. Only the call can tell whether both are in the
	// same fabric.
	e := r.node().end()
	require.NoError(r, e.ep.Connect(*p.at))
	ev := e.rig.next(e.conn)
	if ev.Number == event.Established {
		return true
	}
	require.Contains(r, []event.Number{event.Unreachable, event.NonPeerRejected}, ev.Number)
	return false
}}

// peerVariable is the environment variable that makes a test binary the peer
// process, on the adapter that the variable names.
const peerVariable = "GODAT_CONFORMANCE_PEER"

// process is another process, which listens for connections.
type process struct {
	*exec.Cmd
	at *ep.ConnectConfig // nil if it has no such adapter
}

// process starts the peer process, which ends with the case at the latest.
func (r *rig) process() *process {
	self, err := os.Executable()
	require.NoError(r, err)
	p := &process{Cmd: exec.Command(self)}
	p.Env = append(os.Environ(), peerVariable+"="+r.p.IA)
	p.Stderr = os.Stderr
	_, err = p.StdinPipe() // the pipe closes when this process ends, and then the peer process ends, too
	require.NoError(r, err)
	out, err := p.StdoutPipe()
	require.NoError(r, err)
	require.NoError(r, p.Start())
	r.Cleanup(p.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(r, err)
	var at ep.ConnectConfig
	if _, err := fmt.Sscan(line, &at.Addr, &at.Qual); err == nil {
		p.at = &at
	} else {
		require.Contains(r, line, noAdapter)
	}
	return p
}

// kill kills the process, so that it can't clean up.
func (p *process) kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

// noAdapter is what the peer process says when it can't open its adapter.
const noAdapter = "no such adapter"

// servePeer is the body of the peer process. It accepts every connection request, until
// its standard input ends.
func servePeer(ia string) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	ctx := context.Background()
	a, err := dat.Open(ctx, ia)
	if errors.Is(err, hw.ErrProviderNotFound) {
		fmt.Println(noAdapter)
		select {}
	}
	if err != nil {
		return err
	}
	ln, err := a.Listen(ctx, ":0", dat.ConnConfig{})
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(ln.Addr())
	if err != nil {
		return err
	}
	fmt.Println(a.Attr().Address, port)
	for {
		select {
		case request := <-ln.Requests():
			if _, err := ln.Accept(ep.RequestOf(request), nil); err != nil {
				return err
			}
		case <-ln.Events():
		}
	}
}

// PeerProcess makes this process the peer of a conformance test if it was started
// as one; then it does not return. The TestMain of every package that calls Run
// must call PeerProcess first.
func PeerProcess() {
	ia, is := os.LookupEnv(peerVariable)
	if !is {
		return
	}
	fmt.Fprintln(os.Stderr, "conformance peer:", servePeer(ia))
	os.Exit(1)
}
