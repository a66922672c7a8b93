package inspect

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	dat "godat/runtime"
	"godat/runtime/rpc"
	"godat/runtime/stream"
)

// stream returns both ends of a stream.
func (r *rig) stream() (client, server net.Conn) {
	ln, err := stream.Listen(r.t.Context(), r.ia, ":0", stream.Config{})
	require.NoError(r.t, err)
	accepted := make(chan error)
	go func() {
		var err error
		server, err = ln.Accept()
		accepted <- err
	}()
	client, err = (&stream.Dialer{IA: r.ia}).DialContext(r.t.Context(), "tcp", ln.Addr().String())
	require.NoError(r.t, err)
	require.NoError(r.t, <-accepted)
	return client, server
}

// pour is stream, whose client writes pieces until nothing goes any more.
func (r *rig) pour(piece int) (client, server net.Conn) {
	client, server = r.stream()
	go func() {
		for err := error(nil); err == nil; _, err = client.Write(make([]byte, piece)) {
		}
	}()
	synctest.Wait()
	return client, server
}

// endpoint finds the name of the endpoint of a stream at an address.
func (r *rig) endpoint(local net.Addr) string {
	s, err := r.ia.Snapshot()
	require.NoError(r.t, err)
	for _, e := range s.Endpoints {
		if e.Local == local.String() {
			return e.Name
		}
	}
	require.Fail(r.t, "no endpoint", "at %v", local)
	return ""
}

func TestAPeerThatReadsNoStreamIsNamed(t *testing.T) {
	for why, piece := range map[string]int{"octets lie unread there": 1 << 20, "unread there, and the credits that the peer gave are used up": 1} {
		t.Run(why, func(t *testing.T) {
			staged(t, dat.ConnConfig{}, func(r *rig) {
				client, server := r.pour(piece)
				r.wrong("endpoints", r.endpoint(client.LocalAddr()), why, "a Write waits, because the peer's program has read nothing for 1 s", server.LocalAddr().String())
				r.wrong("endpoints", r.endpoint(server.LocalAddr()), "this program has read nothing for 2 s", "octets lie unread here")
				row := r.get("?show=endpoints&sort=-unread+by+peer").Body.String()
				assert.Contains(t, row, "unread by peer</a>")
				assert.Contains(t, row, "<td>yes</td>", "it writes")
				story := r.get("?of=" + url.QueryEscape(r.endpoint(client.LocalAddr()))).Body.String()
				assert.Contains(t, story, "<dt>writing</dt><dd>yes</dd>")
				assert.Contains(t, story, "<dt>credits</dt>")
			})
		})
	}
}

func TestAStreamThatIsReadIsNoTrouble(t *testing.T) {
	staged(t, dat.ConnConfig{}, func(r *rig) {
		_, server := r.pour(1 << 10)
		for range 3 {
			_, err := io.ReadFull(server, make([]byte, 1<<20))
			require.NoError(t, err)
			synctest.Wait()
			assert.Empty(t, r.ask("?format=json").Troubles)
			time.Sleep(leastAge)
		}
	})
}

// The device has sent the last message of an idle stream, which was suppressed, and nothing has told
// the endpoint of it.
func TestAnIdleStreamIsNoTrouble(t *testing.T) {
	staged(t, dat.ConnConfig{}, func(r *rig) {
		client, server := r.stream()
		for range 3 {
			_, err := client.Write([]byte("x"))
			require.NoError(t, err)
			_, err = server.Read(make([]byte, 1))
			require.NoError(t, err)
		}
		for range 3 {
			synctest.Wait()
			assert.Empty(t, r.ask("?format=json").Troubles)
			time.Sleep(leastAge)
		}
	})
}

// call makes a call, and closes done with its end.
func (r *rig) call(c *rpc.Client, method uint16) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		_, _ = c.Call(r.t.Context(), rpc.Call{Method: method}, nil)
	}()
	synctest.Wait()
	return done
}

// serve returns a server whose program takes nothing, and a client of it.
func (r *rig) serve(cfg rpc.Config) (*rpc.Server, *rpc.Client) {
	s, err := rpc.Listen(r.t.Context(), r.ia, ":0", cfg)
	require.NoError(r.t, err)
	c, err := rpc.Dial(r.t.Context(), r.ia, s.Addr(), cfg)
	require.NoError(r.t, err)
	synctest.Wait()
	return s, c
}

func TestAServerThatTakesNoRequestsIsNamedAtBothEnds(t *testing.T) {
	staged(t, dat.ConnConfig{}, func(r *rig) {
		s, c := r.serve(rpc.Config{})
		done := r.call(c, 7)
		r.wrong("rpc servers", s.Addr(), "this program takes no requests, since it neither runs Serve nor reads Requests: 1 request waits for a handler, for 1 s")
		assert.NotContains(t, r.kinds(), "rpc connections", "nobody has taken the request")
		r.wrong("rpc clients", s.Addr(), "1 call, of method 7, has waited 2 s for its answer")
		require.NoError(t, rpc.RequestOf(<-s.Requests()).Fail(rpc.CodeUser, "no"))
		<-done
		synctest.Wait()
		time.Sleep(leastAge)
		assert.Empty(t, r.ask("?format=json").Troubles)
		body := r.get("?show=rpc+clients").Body.String()
		for _, part := range []string{"rpc clients 1", "rpc servers 1", "rpc connections 1", "failures</a>", s.Addr()} {
			assert.Contains(t, body, part)
		}
		var said struct {
			Table struct{ Items []rpc.ClientSnapshot }
		}
		r.askFor("?show=rpc+clients&format=json", &said)
		require.Len(t, said.Table.Items, 1)
		assert.EqualValues(t, 1, said.Table.Items[0].Failures)
		require.NoError(t, errors.Join(c.Close(), s.Close()))
		assert.Equal(t, http.StatusOK, r.get("?show=rpc+clients").Code, "the snapshot of before")
		time.Sleep(leastAge)
		assert.Equal(t, http.StatusNotFound, r.get("?show=rpc+clients").Code)
	})
}

func TestAHandlerThatDoesNotEndIsNamed(t *testing.T) {
	staged(t, dat.ConnConfig{}, func(r *rig) {
		s, c := r.serve(rpc.Config{})
		r.call(c, 9)
		request := rpc.RequestOf(<-s.Requests())
		name := ""
		for _, row := range r.reported("rpc connections") {
			name = reflect.ValueOf(row).FieldByName("Client").String()
		}
		require.Contains(t, name, "(connection ")
		r.wrong("rpc servers", s.Addr(), "a handler of method 9 does not return: it has had a request of the client "+name+" for 1 s, and nothing was answered meanwhile")
		assert.NotContains(t, r.kinds(), "rpc connections", "one trouble is one line")
		require.NoError(t, request.Reply(nil))
		require.NoError(t, errors.Join(c.Close(), s.Close()))
	})
}

// reported are the rows of a kind in a snapshot.
func (r *rig) reported(kind string) []any {
	s, err := r.ia.Snapshot()
	require.NoError(r.t, err)
	return s.Reports[kind]
}

func TestAServerWhoseProcessTakesNothingUsesTheCreditsUp(t *testing.T) {
	staged(t, dat.ConnConfig{Depth: 4, Message: 256}, func(r *rig) {
		accepted := make(chan error, 1)
		go func() {
			cr := ep.RequestOf(<-r.ln.Requests())
			asked, err := cr.Query()
			if err == nil {
				hello := slices.Clone(asked.Private)     // the server says what the client says,
				binary.BigEndian.PutUint32(hello[8:], 4) // but has 4 receives,
				_, err = r.ln.Accept(cr, hello)          // and takes no message
			}
			accepted <- err
		}()
		c, err := rpc.Dial(r.t.Context(), r.ia, r.ln.Addr(), rpc.Config{})
		require.NoError(t, err)
		require.NoError(t, <-accepted)
		for range 5 {
			r.call(c, 1)
		}
		r.wrong("rpc clients", r.ln.Addr(), "2 calls or cancels wait for the server, which has taken no message for 1 s", "has stopped, or its program takes no events (the credits that it gave are used up)")
		require.NoError(t, c.Close())
	})
}

func TestAClientWithoutAConnectionIsNamed(t *testing.T) {
	staged(t, dat.ConnConfig{}, func(r *rig) {
		s, c := r.serve(rpc.Config{Redial: time.Second})
		require.NoError(t, s.Close())
		time.Sleep(leastAge)
		r.wrong("rpc clients", s.Addr(), "no connection after ", " failed attempts: nobody listens there")
		told := r.ask("?format=json").Troubles
		require.Len(t, told, 1, "the attempts are the same trouble")
		assert.Equal(t, "rpc client to "+s.Addr(), told[0].Head)
		require.NoError(t, c.Close())
	})
}

// disk is a row that a program reports.
type disk struct {
	Name    string
	Queue   int
	Latency time.Duration
	Full    bool
	secret  int
}

func (d disk) Trouble(time.Duration) string {
	if d.Full {
		return "is full: delete something, or make it larger"
	}
	return ""
}

func TestWhatAProgramReportsIsAListOfThePage(t *testing.T) {
	r := newRig(t, 0, dat.ConnConfig{})
	_, err := r.ia.Report("disks", func() []any {
		return []any{disk{Name: "a", Queue: 3, Latency: time.Millisecond}, disk{Name: "b", Queue: 5, Full: true, secret: 1}}
	})
	require.NoError(t, err)
	_, err = r.ia.Report("odd", func() []any { panic("no rows") })
	require.NoError(t, err)
	body := r.get("?show=disks&sort=-queue").Body.String()
	for _, part := range []string{"disks 2", "latency</a>", "1 ms", "yes", "disk b</a>: is full: delete"} {
		assert.Contains(t, body, part)
	}
	assert.NotContains(t, body, "secret")
	assert.Less(t, strings.Index(body, ">b</td>"), strings.Index(body, ">a</td>"))
	assert.Contains(t, r.get("?show=odd").Body.String(), "panicked: no rows")
	assert.Equal(t, []trouble{{Kind: "disks", Show: "disks", Name: "b", Head: "disk b", Text: "is full: delete something, or make it larger"}}, r.ask("?format=json").Troubles)
}
