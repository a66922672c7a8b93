//go:build unix

package inspect

import (
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	dat "godat/runtime"
)

// A program that opens files until there is no descriptor left.
func TestAListenerWithoutADescriptorIsNamed(t *testing.T) {
	ia, err := dat.Open(t.Context(), "iwarp:127.0.0.1")
	require.NoError(t, err)
	defer func() { require.NoError(t, ia.Close()) }()
	ln, err := ia.Listen(t.Context(), "127.0.0.1:0", dat.ConnConfig{Conns: 4})
	require.NoError(t, err)
	r := &rig{t, ia, ln, New(ia)}
	require.Empty(t, r.ask("?format=json").Troubles)
	var was unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	low := was
	low.Cur = min(was.Cur, 256)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
	var files []*os.File
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
		assert.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was))
	}()
	for err == nil {
		var f *os.File
		if f, err = os.Open(os.DevNull); err == nil {
			files = append(files, f)
		}
	}
	require.ErrorIs(t, err, syscall.EMFILE)
	last := len(files) - 1
	require.NoError(t, files[last].Close())
	files = files[:last]
	peer, err := net.Dial("tcp", ln.Addr()) // with the descriptor that is free now
	require.NoError(t, err)
	defer peer.Close()
	require.NoError(t, peer.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = peer.Read(make([]byte, 1))
	require.Error(t, err, "it is turned away")
	r.h.adapters[0].mu.Lock()
	s, err := ia.Snapshot()
	require.NoError(t, err)
	found := troubles(&seen{Snapshot: s}, r.h.adapters[0].now)
	r.h.adapters[0].mu.Unlock()
	require.NotEmpty(t, found)
	assert.Equal(t, "descriptors", found[0].Kind)
	assert.Equal(t, ln.String(), found[0].Name)
	assert.Contains(t, found[0].Text, "ulimit -n")
}

func TestThePageAnswersInAProcessWithoutADescriptor(t *testing.T) {
	ia, err := dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	defer func() { require.NoError(t, ia.Close()) }()
	url, err := Serve(t.Context(), "127.0.0.1:0", "", ia)
	require.NoError(t, err)
	at := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/")
	var was unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	low := was
	low.Cur = min(was.Cur, 256)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
	defer func() { assert.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was)) }()
	for range 3 {
		for range 2 { // the second one is let in behind the page's having its spare descriptor
			answer, err := http.Get(url)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
		}
		func() {
			var files []*os.File
			defer func() {
				for _, f := range files {
					_ = f.Close()
				}
			}()
			for {
				f, err := os.Open(os.DevNull)
				if err != nil {
					break
				}
				files = append(files, f)
			}
			last := len(files) - 1
			require.NoError(t, files[last].Close())
			files = files[:last]
			c, err := net.Dial("tcp", at) // with the last one, so that the page has none
			require.NoError(t, err)
			defer c.Close()
			require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
			_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
			require.NoError(t, err)
			answer, err := io.ReadAll(c)
			require.NoError(t, err)
			assert.Contains(t, string(answer), "200 OK")
			assert.Contains(t, string(answer), "</html>")
		}()
	}
}
