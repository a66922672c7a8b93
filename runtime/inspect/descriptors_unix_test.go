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

// robbed is a visitor's connection in whose close another goroutine takes the descriptor that gets
// free.
type robbed struct {
	*net.TCPConn
	taken *[]*os.File
}

func (r robbed) Close() error {
	err := r.TCPConn.Close()
	if f, e := os.Open(os.DevNull); e == nil {
		*r.taken = append(*r.taken, f)
	}
	return err
}

// scarceListener is a listener whose first accept finds no descriptor, of the process or of the system, and
// whose visitors are robbed.
type scarceListener struct {
	*net.TCPListener
	scarce error
	taken  []*os.File
}

func (c *scarceListener) Accept() (net.Conn, error) {
	if err := c.scarce; err != nil {
		c.scarce = nil
		return nil, err
	}
	conn, err := c.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return robbed{conn, &c.taken}, nil
}

func TestTheSpareDescriptorIsLentAndComesBackWithoutAMomentBetween(t *testing.T) {
	for _, scarce := range []error{syscall.EMFILE, syscall.ENFILE} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		c := &scarceListener{TCPListener: ln.(*net.TCPListener), scarce: scarce}
		e := &entrance{Listener: c, places: make(chan struct{}, 2)}
		e.reserve()
		peer, err := net.Dial("tcp", ln.Addr().String())
		require.NoError(t, err)
		v, err := e.Accept()
		require.NoError(t, err, "by the spare one, %v", scarce)
		assert.Nil(t, e.spare)
		require.NoError(t, v.Close())
		require.NoError(t, v.Close(), "once more")
		assert.NotNil(t, e.spare)
		assert.Empty(t, c.taken, "the visitor's descriptor was free for a moment")
		require.NoError(t, peer.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err = peer.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF, "the visitor sees the end")
		_, err = v.Read(make([]byte, 1))
		require.Error(t, err)
		e.reserve()
		_, isFile := e.spare.(*os.File)
		assert.True(t, isFile, "a connection is kept no longer than needed")
		e.end()
		assert.Nil(t, e.spare)
		require.NoError(t, peer.Close())
		require.NoError(t, ln.Close())
		for _, f := range c.taken {
			_ = f.Close()
		}
	}
}
