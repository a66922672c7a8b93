// Package lives has lives of connections, calls, streams and disks without a fault, as transcripts: read testdata first,
// and then the life of the same name here. A life is written so that each line follows from the one before.
package lives

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"godat/check/world/program"
	"godat/ep"
	"godat/hw/event"
	dat "godat/runtime"
)

var update = flag.Bool("update", false, "write the transcripts anew")

// life is one transcript, of a client's host and a server's.
type life struct {
	*testing.T
	client, server *dat.IA

	mu   sync.Mutex
	text strings.Builder
}

// lives are all of them, by name.
var lives = map[string]func(*life){}

func TestALifeIsAsItsTranscriptSays(t *testing.T) {
	require.GreaterOrEqual(t, len(lives), 12)
	for name, lived := range lives {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := must(program.New(1, "iwarp", nil))
				l := &life{T: t, client: must(w.Open("10.0.0.1")), server: must(w.Open("10.0.0.2"))}
				lived(l)
				_, err := w.End()
				require.NoError(t, err)
				l.compare(filepath.Join("testdata", name+".txt"))
			})
		})
	}
}

// says adds a line.
func (l *life) says(who, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(&l.text, "%-7s %s\n", who, fmt.Sprintf(format, args...))
}

// compare compares the transcript with the one that is kept.
func (l *life) compare(path string) {
	if *update {
		require.NoError(l, os.WriteFile(path, []byte(l.text.String()), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(l, err, "write it with -args -update, and read it")
	require.Equal(l, string(want), l.text.String())
}

// address is where the server listens.
const address = "10.0.0.2:7000"

// connected has a connection that both ends have seen come up.
func (l *life) connected(shape dat.ConnConfig) (ln *dat.Listener, client, server *dat.Conn) {
	ln = must(l.server.Listen(l.Context(), address, shape))
	l.says("server", "listens")
	accepted := make(chan *dat.Conn, 1)
	go func() {
		c, err := ln.Accept(ep.RequestOf(<-ln.Requests()), nil)
		if err != nil {
			l.Errorf("Accept: %v", err)
		}
		accepted <- c
	}()
	client = must(l.client.Dial(l.Context(), address, shape))
	l.says("client", "is connected; its endpoint is %v", client.Endpoint.State())
	server = <-accepted
	ev := <-server.Events()
	require.Equal(l, event.Established, ev.Number)
	l.says("server", "is told of it; its endpoint is %v", server.Endpoint.State())
	return ln, client, server
}

// ends ends a listener behind its connections.
func (l *life) ends(ln *dat.Listener, all ...*dat.Conn) {
	for _, c := range all {
		require.NoError(l, c.Close())
	}
	require.NoError(l, ln.Close())
	l.says("server", "listens no more")
}

// next is the next event of a connection that is no establishment.
func next(c *dat.Conn) event.Event {
	for {
		if ev := <-c.Events(); ev.Number != event.Established {
			return ev
		}
	}
}

// brief is an error without what differs from run to run.
func brief(err error) string {
	if err == nil {
		return "no error"
	}
	text := err.Error()
	for u := errors.Unwrap(err); u != nil; u = errors.Unwrap(u) {
		text = u.Error()
	}
	return text
}

// must is what a call has returned that must not fail.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
