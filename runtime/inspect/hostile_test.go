package inspect

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

// served runs a test with the page that Serve serves, over a wire.
func served(t *testing.T, visit func(t *testing.T, w *wire)) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, dat.ConnConfig{})
		w, s := newWire(), server(r.h)
		over := make(chan struct{})
		go func() {
			run(s, newEntrance(w))
			close(over)
		}()
		visit(t, w)
		require.NoError(t, s.Close())
		<-over
		time.Sleep(time.Second) // the server waits for those whom it refused to read that
		require.NoError(t, r.ia.Close())
	})
}

// come is a visitor who says something, and is let in.
func (w *wire) come(t *testing.T, says string) net.Conn {
	here, there := net.Pipe()
	w.incoming <- there
	_, err := io.WriteString(here, says)
	require.NoError(t, err)
	return here
}

const visit = "GET /?show=listeners HTTP/1.1\r\nHost: page\r\n"

func TestAVisitorWhoIsSlowIsSentAway(t *testing.T) {
	served(t, func(t *testing.T, w *wire) {
		for name, says := range map[string]string{"says nothing": "", "stops in a header": visit, "reads nothing": visit + "\r\n"} {
			c, began := w.come(t, says), time.Now()
			if strings.HasSuffix(says, "\r\n\r\n") {
				time.Sleep(patience)
				synctest.Wait()
			}
			n, err := io.Copy(io.Discard, c)
			require.NoError(t, err, name)
			assert.Zero(t, n, name)
			assert.Equal(t, patience, time.Since(began), name)
			require.NoError(t, c.Close())
		}
	})
}

func TestAVisitorOnASlowLinkGetsTheWholePage(t *testing.T) {
	served(t, func(t *testing.T, w *wire) {
		c, began := w.come(t, visit+"\r\n"), time.Now()
		var all []byte
		for some := make([]byte, 512); ; time.Sleep(time.Second) {
			n, err := c.Read(some)
			all = append(all, some[:n]...)
			if err != nil {
				require.ErrorIs(t, err, io.EOF)
				break
			}
		}
		assert.Contains(t, string(all), "</html>")
		assert.Greater(t, time.Since(began), patience)
		require.NoError(t, c.Close())
	})
}

func TestAVisitorWhoSaysTooMuchIsRefused(t *testing.T) {
	served(t, func(t *testing.T, w *wire) {
		c := w.come(t, visit)
		go func() { _, _ = io.WriteString(c, "Cookie: "+strings.Repeat("x", 1<<20)) }()
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		assert.Equal(t, http.StatusRequestHeaderFieldsTooLarge, answer.StatusCode)
		require.NoError(t, c.Close())
	})
}

func TestVisitorsWhoStayTakeABoundedNumberOfDescriptors(t *testing.T) {
	served(t, func(t *testing.T, w *wire) {
		var in []net.Conn
		for range mostVisitors {
			in = append(in, w.come(t, visit))
		}
		here, there := net.Pipe()
		select {
		case w.incoming <- there:
			require.Fail(t, "one too many is let in")
		default:
			synctest.Wait()
		}
		require.NoError(t, in[0].Close())
		w.incoming <- there
		_, err := fmt.Fprint(here, visit, "Connection: close\r\n\r\n")
		require.NoError(t, err)
		answer, err := http.ReadResponse(bufio.NewReader(here), nil)
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, answer.StatusCode)
		for _, c := range append(in[1:], here) {
			require.NoError(t, c.Close())
		}
	})
}

func TestFourHundredSlowVisitorsKeepNobodyFromThePage(t *testing.T) {
	served(t, func(t *testing.T, w *wire) {
		var in []net.Conn
		began := time.Now()
		for range 400 {
			here, there := net.Pipe()
			w.incoming <- there
			in = append(in, here)
		}
		here := w.come(t, visit+"\r\n")
		answer, err := http.ReadResponse(bufio.NewReader(here), nil)
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, answer.StatusCode)
		assert.LessOrEqual(t, time.Since(began), 2*time.Second)
		for _, c := range append(in, here) {
			require.NoError(t, c.Close())
		}
	})
}

func TestSlowVisitorsLeaveOnlyWhereTheirAddressHasTheMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &entrance{in: make(map[*visitor]time.Time)}
		for i := range 9 {
			e.in[&visitor{from: fmt.Sprint("10.0.0.", min(i, 3))}] = time.Now()
		}
		assert.Empty(t, e.slow(), "nobody has been in for long")
		time.Sleep(brief)
		slow := e.slow()
		require.Len(t, slow, 6)
		for _, v := range slow {
			assert.Equal(t, "10.0.0.3", v.from)
		}
	})
}
