package guest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConsoleSeparatesOutputFromReports(t *testing.T) {
	for _, c := range []struct {
		name, in, out string
		booted        bool
		ended         bool
		status        int
		failed        string
		clock         []string
	}{
		{name: "nothing yet", in: ""},
		{name: "readings of the clock", in: "\nkey clock 1.24 \n\nkey clock 3.10 1.31\n\nkey booted\n", booted: true, clock: []string{"1.24 ", "3.10 1.31"}},
		{name: "booted", in: "\nkey booted\n", booted: true},
		{name: "output that ends with a line break", in: "\nkey booted\nhello\n\nkey exit 0\n", out: "hello\n", booted: true, ended: true},
		{name: "output that does not", in: "\nkey booted\nhello\nkey exit 3\n", out: "hello", booted: true, ended: true, status: 3},
		{name: "no output", in: "\nkey booted\n\nkey exit 255\n", booted: true, ended: true, status: 255},
		{name: "output that resembles a report", in: "\nkey booted\nkey\nkeys exit 1\n key exit 1\n\nkey exit 2\n", out: "key\nkeys exit 1\n key exit 1\n", booted: true, ended: true, status: 2},
		{name: "zeros and high bytes", in: "\nkey booted\n\x00\xff\n\n\nkey exit 0\n", out: "\x00\xff\n\n", booted: true, ended: true},
		{name: "nothing after the end counts", in: "\nkey exit 1\nrest\nkey exit 2\n", ended: true, status: 1},
		{name: "init failed", in: "\nkey failed no module siw\n", failed: "no module siw"},
		{name: "a line of a terminal", in: "\nkey exit 4\r\n", ended: true, status: 4},
		{name: "an exit status that is none", in: "\nkey exit x\n", failed: `exit status "x"`},
		{name: "a report that is none", in: "\nkey dance\n", failed: `strange report "dance"`},
		{name: "a report without end", in: "\nkey " + strings.Repeat("x", longestReport), failed: `strange report "` + strings.Repeat("x", longestReport) + `"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, piece := range []int{1, 2, 3, 5, len(c.in) + 1} {
				var out bytes.Buffer
				booted := 0
				var clock []string
				con := newConsole("key", &out, func() { booted++ }, func(s string) { clock = append(clock, s) })
				for rest := []byte(c.in); len(rest) > 0; {
					n := min(piece, len(rest))
					m, err := con.Write(rest[:n])
					require.NoError(t, err)
					require.Equal(t, n, m)
					rest = rest[n:]
				}
				assert.Equal(t, c.out, out.String(), "in pieces of %d", piece)
				assert.Equal(t, c.booted, booted == 1)
				assert.Equal(t, c.clock, clock)
				assert.Equal(t, c.ended, con.ended)
				assert.Equal(t, c.status, con.status)
				if c.failed != "" {
					require.EqualError(t, con.failed, c.failed)
				} else {
					require.NoError(t, con.failed)
				}
				select {
				case <-con.finished:
					assert.True(t, c.ended || c.failed != "")
				default:
					assert.False(t, c.ended || c.failed != "")
				}
			}
		})
	}
}

func TestConsoleHoldsBackNoMoreThanTheBeginningOfAReport(t *testing.T) {
	var out bytes.Buffer
	con := newConsole("key", &out, func() {}, nil)
	_, err := con.Write([]byte("hello\nke"))
	require.NoError(t, err)
	assert.Equal(t, "hello", out.String())
	_, err = con.Write([]byte("ttle"))
	require.NoError(t, err)
	assert.Equal(t, "hello\nkettle", out.String())
}

func TestConsoleReadsTheStatusThoughItsWriterFails(t *testing.T) {
	con := newConsole("key", &failingWriter{}, func() {}, nil)
	_, err := con.Write([]byte("hello"))
	require.NoError(t, err)
	_, err = con.Write([]byte("\nkey exit 7\n"))
	require.NoError(t, err)
	assert.Equal(t, 7, con.status)
}
