package inspect

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

func TestAnAddressThatAnotherProgramHasIsAnErrorThatSaysWhose(t *testing.T) {
	ia, err := dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	defer ia.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	answers := func(text string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if assert.Equal(t, "/?format=json", r.URL.String()) {
				_, _ = io.WriteString(w, text)
			}
		}))
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	const nobody = "another program, which shows no such page, listens at "
	for at, says := range map[string]string{
		silent.Addr().String():                  nobody,
		answers("hello"):                        nobody,
		answers(`{"Process": {"PID": "x"}}`):    nobody,
		answers(strings.Repeat(`{"a":`, 1<<20)): nobody,
		answers(`{"Adapter": "loop", "Process": {"Program": "kv", "Host": "db7", "PID": 4711, "Uptime": 7200000000000, "Of": "a later version"}}`): `/ is the page of another program already, "kv on db7, process 4711", up for 2 h`,
		answers(`{"Process": {"Program": "\u001b[2J` + strings.Repeat("x", 1000) + `", "PID": 1}}`):                                                `/ is the page of another program already, "\x1b[2Jxxx`,
	} {
		url, err := Serve(t.Context(), at, "", ia)
		assert.Empty(t, url)
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		assert.ErrorContains(t, err, says)
		assert.ErrorContains(t, err, at)
		assert.ErrorContains(t, err, "give this one another address, or port 0 for one that is free")
		assert.Less(t, len(err.Error()), 500)
	}
}

func TestAnAddressThatIsNoneSaysWhatOneIs(t *testing.T) {
	ia, err := dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	defer ia.Close()
	_, err = Serve(t.Context(), "192.0.2.1:0", "", ia)
	require.ErrorContains(t, err, "192.0.2.1 is no address of this host; take one that it has")
	for _, at := range []string{"6060", "127.0.0.1", "127.0.0.1:6060:1", "127.0.0.1:x", "127.0.0.1:66000"} {
		_, err := Serve(t.Context(), at, "", ia)
		require.ErrorContains(t, err, "the page's is HOST:PORT, such as 127.0.0.1:6060", at)
	}
}
