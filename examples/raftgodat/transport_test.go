package raftgodat

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

func TestEachRequestComesWholeAndSoDoesItsAnswer(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		a, b := open(t, ia, Config{}), open(t, ia, Config{})
		to := b.LocalAddr()
		for _, x := range []struct {
			args, resp, got any
			ask             func(args, got any) error
		}{
			{
				&raft.RequestVoteRequest{RPCHeader: header, Term: 20, LastLogIndex: 100, LastLogTerm: 19, LeadershipTransfer: true},
				&raft.RequestVoteResponse{RPCHeader: header, Term: 100, Granted: true}, new(raft.RequestVoteResponse),
				func(args, got any) error {
					return a.RequestVote("b", to, args.(*raft.RequestVoteRequest), got.(*raft.RequestVoteResponse))
				},
			},
			{
				&raft.RequestPreVoteRequest{RPCHeader: header, Term: 21, LastLogIndex: 1, LastLogTerm: 2},
				&raft.RequestPreVoteResponse{RPCHeader: header, Term: 8}, new(raft.RequestPreVoteResponse),
				func(args, got any) error {
					return a.RequestPreVote("b", to, args.(*raft.RequestPreVoteRequest), got.(*raft.RequestPreVoteResponse))
				},
			},
			{
				&raft.TimeoutNowRequest{RPCHeader: header}, &raft.TimeoutNowResponse{RPCHeader: header}, new(raft.TimeoutNowResponse),
				func(args, got any) error {
					return a.TimeoutNow("b", to, args.(*raft.TimeoutNowRequest), got.(*raft.TimeoutNowResponse))
				},
			},
		} {
			done := make(chan error, 1)
			go func() { done <- x.ask(x.args, x.got) }()
			assert.Equal(t, x.args, answer(t, b, x.resp, nil))
			require.NoError(t, <-done)
			assert.Equal(t, x.resp, x.got)
		}
		assert.Equal(t, to, a.DecodePeer(a.EncodePeer("b", to)))
	})
}

func TestEntriesOfAnySizeComeAsTheyWere(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		a, b := open(t, ia, Config{}), open(t, ia, Config{})
		for _, sizes := range [][]int{{}, {0}, {10}, {5000, 0, 11000}, {message, 1}, {1 << 20, 3 << 20, 17}} {
			args := &raft.AppendEntriesRequest{
				RPCHeader: header, Term: 10, PrevLogEntry: 100, PrevLogTerm: 4, LeaderCommitIndex: 90, Entries: entries(101, sizes...),
			}
			resp, got := &raft.AppendEntriesResponse{Term: 4, LastLog: 90, Success: true}, new(raft.AppendEntriesResponse)
			done := make(chan error, 1)
			go func() { done <- a.AppendEntries("b", b.LocalAddr(), args, got) }()
			came, ok := answer(t, b, resp, nil).(*raft.AppendEntriesRequest)
			require.True(t, ok)
			require.NoError(t, <-done)
			assert.Equal(t, resp, got)
			assert.True(t, assert.ObjectsAreEqual(args, came), "%v", sizes)
		}
	})
}

func TestAnErrorOfTheEngineIsToldApartFromOneOfTheTransport(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		a, b := open(t, ia, Config{Timeout: 2 * time.Second}), open(t, ia, Config{Largest: chunk})
		vote := func() error {
			return a.RequestVote("b", b.LocalAddr(), &raft.RequestVoteRequest{RPCHeader: header}, new(raft.RequestVoteResponse))
		}
		done := make(chan error, 1)
		go func() { done <- vote() }()
		answer(t, b, nil, errors.New("no such term"))
		var engine *EngineError
		require.ErrorAs(t, <-done, &engine)
		assert.Equal(t, "no such term", engine.Text)

		err := a.AppendEntries("b", b.LocalAddr(), &raft.AppendEntriesRequest{Entries: entries(1, 2*chunk)}, new(raft.AppendEntriesResponse))
		require.ErrorContains(t, err, "the target takes")
		require.False(t, errors.As(err, &engine))

		require.NoError(t, b.Close())
		err = vote()
		require.Error(t, err)
		require.False(t, errors.As(err, &engine), "%v", err)
		require.NoError(t, a.Close())
		require.ErrorIs(t, vote(), raft.ErrTransportShutdown)
		_, err = a.AppendEntriesPipeline("b", b.LocalAddr())
		require.ErrorIs(t, err, raft.ErrTransportShutdown)
	})
}

func TestAnEngineThatDoesNotAnswerHoldsNobody(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		a, b := open(t, ia, Config{}), open(t, ia, Config{})
		beat := &raft.AppendEntriesRequest{RPCHeader: header, Term: 3}
		b.SetHeartbeatHandler(func(raft.RPC) {}) // as that of a raft that was shut down
		begun := time.Now()
		require.ErrorIs(t, a.AppendEntries("b", b.LocalAddr(), beat, new(raft.AppendEntriesResponse)), ErrNoAnswer)
		assert.Less(t, time.Since(begun), 5*time.Second, "at once, and not after the time-out")

		results := make(chan error, 2)
		go func() {
			results <- a.RequestVote("b", b.LocalAddr(), &raft.RequestVoteRequest{}, new(raft.RequestVoteResponse))
		}()
		next(t, b) // which nobody answers
		go func() {
			results <- a.AppendEntries("b", b.LocalAddr(), &raft.AppendEntriesRequest{Entries: entries(1, 1<<20)}, new(raft.AppendEntriesResponse))
		}()
		next(t, b)
		require.NoError(t, b.Close())
		for range 2 {
			require.Error(t, <-results)
		}
	})
}

func TestAHeartbeatPassesEntriesThatWait(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		a, b := open(t, ia, Config{}), open(t, ia, Config{})
		b.SetHeartbeatHandler(func(r raft.RPC) { r.Respond(&raft.AppendEntriesResponse{Term: 3, Success: true}, nil) })
		done := make(chan error, 1)
		go func() {
			done <- a.AppendEntries("b", b.LocalAddr(), &raft.AppendEntriesRequest{RPCHeader: header, Term: 3, Entries: entries(1, 1<<20)}, new(raft.AppendEntriesResponse))
		}()
		waits := next(t, b)
		got := new(raft.AppendEntriesResponse)
		require.NoError(t, a.AppendEntries("b", b.LocalAddr(), &raft.AppendEntriesRequest{RPCHeader: header, Term: 3}, got))
		assert.True(t, got.Success)
		waits.Respond(&raft.AppendEntriesResponse{}, nil)
		require.NoError(t, <-done)
		p, err := a.peer(b.LocalAddr())
		require.NoError(t, err)
		assert.NotSame(t, p.beats.now.client, p.calls.now.client, "a connection of their own")
	})
}

func TestAPipelineKeepsItsOrderAndWaitsWhenItIsFull(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		a, b := open(t, ia, Config{Pipeline: 4}), open(t, ia, Config{})
		p, err := a.AppendEntriesPipeline("b", b.LocalAddr())
		require.NoError(t, err)
		const n = 60
		go func() {
			for i := range uint64(n) {
				size := 10
				if i%3 == 0 {
					size = 1 << 18 // slower than those behind it
				}
				_, err := p.AppendEntries(&raft.AppendEntriesRequest{Term: 1, Entries: entries(i, size)}, new(raft.AppendEntriesResponse))
				assert.NoError(t, err)
			}
		}()
		var waiting []raft.RPC
		for i := range uint64(n) {
			r := next(t, b)
			assert.Equal(t, i, r.Command.(*raft.AppendEntriesRequest).Entries[0].Index)
			if waiting = append(waiting, r); len(waiting) == 4 {
				select {
				case <-b.Consumer():
					t.Error("more than Config.Pipeline requests are under way")
				case <-time.After(time.Millisecond):
				}
				for j, r := range waiting {
					r.Respond(&raft.AppendEntriesResponse{LastLog: i - 3 + uint64(j), Success: true}, nil)
				}
				waiting = nil
			}
		}
		for i := range uint64(n) {
			f := <-p.Consumer()
			require.NoError(t, f.Error())
			assert.Equal(t, i, f.Request().Entries[0].Index)
			assert.Equal(t, i, f.Response().LastLog)
			assert.False(t, f.Start().IsZero())
		}
		under, err := p.AppendEntries(&raft.AppendEntriesRequest{Entries: entries(1, 1<<18)}, new(raft.AppendEntriesResponse))
		require.NoError(t, err)
		require.NoError(t, p.Close())
		answer(t, b, &raft.AppendEntriesResponse{Success: true}, nil)
		require.NoError(t, under.Error(), "it was taken before the close")
		_, err = p.AppendEntries(&raft.AppendEntriesRequest{}, nil)
		require.ErrorIs(t, err, raft.ErrPipelineShutdown)

		p, err = a.AppendEntriesPipeline("b", b.LocalAddr())
		require.NoError(t, err)
		under, err = p.AppendEntries(&raft.AppendEntriesRequest{}, new(raft.AppendEntriesResponse))
		require.NoError(t, err)
		next(t, b)
		require.NoError(t, p.Close())
		require.NoError(t, a.Close())
		require.Error(t, under.Error(), "the transport was closed")
		require.NoError(t, p.Close())
	})
}

func TestASnapshotOfAnySizeComesWhole(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		a, b := open(t, ia, Config{}), open(t, ia, Config{})
		for _, n := range []int{0, 10, chunk, 3*chunk + 5} {
			data := make([]byte, n)
			for i := range data {
				data[i] = byte(i * 3 >> 4)
			}
			args := &raft.InstallSnapshotRequest{RPCHeader: header, Term: 10, Configuration: make([]byte, 2*message), Size: int64(n)}
			got, done := new(raft.InstallSnapshotResponse), make(chan error, 1)
			go func() {
				done <- a.InstallSnapshot("b", b.LocalAddr(), args, got, bytes.NewReader(append(data, "behind it"...)))
			}()
			r := next(t, b)
			assert.Equal(t, args, r.Command)
			came, err := io.ReadAll(r.Reader)
			require.NoError(t, err)
			assert.True(t, bytes.Equal(data, came))
			r.Respond(&raft.InstallSnapshotResponse{Term: 10, Success: true}, nil)
			require.NoError(t, <-done)
			assert.True(t, got.Success)
			assert.Empty(t, b.snapshots)
		}
	})
}

func TestASnapshotEndsWhenEitherEndStops(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		a, b := open(t, ia, Config{}), open(t, ia, Config{Timeout: time.Second})
		args := &raft.InstallSnapshotRequest{Size: 10 * chunk}
		send := func(a *Transport, data io.Reader) chan error {
			done := make(chan error, 1)
			go func() {
				done <- a.InstallSnapshot("b", b.LocalAddr(), args, new(raft.InstallSnapshotResponse), data)
			}()
			return done
		}
		// Raft refuses it after it has read a part.
		done := send(a, bytes.NewReader(make([]byte, 10*chunk)))
		r := next(t, b)
		_, err := io.ReadFull(r.Reader, make([]byte, chunk+1))
		require.NoError(t, err)
		r.Respond(nil, errors.New("an old term"))
		var engine *EngineError
		require.ErrorAs(t, <-done, &engine)

		// The sender can't read its snapshot.
		broken := errors.New("the disk is broken")
		done = send(a, io.MultiReader(bytes.NewReader(make([]byte, chunk)), iotestErr{broken}))
		r = next(t, b)
		_, err = io.ReadAll(r.Reader)
		require.ErrorIs(t, err, errStalled)
		require.ErrorIs(t, <-done, broken)
		r.Respond(nil, err)

		// Raft reads nothing.
		done = send(open(t, ia, Config{Timeout: time.Second}), bytes.NewReader(make([]byte, 10*chunk)))
		next(t, b)
		require.Error(t, <-done)
		require.NoError(t, b.Close())
	})
}

type iotestErr struct{ error }

func (e iotestErr) Read([]byte) (int, error) { return 0, e.error }

func TestACallWaitsNoLongerThanItsContextWhileAnotherOneDials(t *testing.T) {
	ia, err := dat.Open(t.Context(), "iwarp:127.0.0.1")
	require.NoError(t, err)
	defer func() { require.NoError(t, ia.CloseGraceful()) }()
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, silent.Close()) }()
	tr, err := New(t.Context(), ia, ":0", Config{})
	require.NoError(t, err)
	l, err := tr.newLink(silent.Addr().String())
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	dialed := make(chan error)
	go func() {
		_, err := l.acquire(ctx)
		dialed <- err
	}()
	c, err := silent.Accept() // and nobody answers
	require.NoError(t, err)
	gone, leave := context.WithCancel(t.Context())
	leave()
	_, err = l.acquire(gone)
	require.ErrorIs(t, err, context.Canceled)
	stop()
	require.Error(t, <-dialed)
	require.NoError(t, c.Close())
	require.NoError(t, tr.closeLink(l))
	require.NoError(t, tr.Close())
}

func TestATransportReachesANodeThatIsBackAtItsAddress(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		a := open(t, ia, Config{})
		address := ":0"
		for range 3 {
			b, err := New(t.Context(), ia, address, Config{})
			require.NoError(t, err)
			address = string(b.LocalAddr())
			done := make(chan error, 1)
			go func() {
				err := errors.New("not asked")
				for range 2 { // the first may find that the connection has ended
					if err = a.RequestVote("b", b.LocalAddr(), &raft.RequestVoteRequest{}, new(raft.RequestVoteResponse)); err == nil {
						break
					}
				}
				done <- err
			}()
			answer(t, b, &raft.RequestVoteResponse{}, nil)
			require.NoError(t, <-done)
			require.NoError(t, b.Close())
		}
	})
}

func TestAConfigurationThatMakesNoSenseIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		for _, cfg := range []Config{{Timeout: -1}, {Pipeline: -1}, {Pipeline: mostPipeline + 1}, {Largest: 1}, {Peers: -1}} {
			_, err := New(t.Context(), ia, "", cfg)
			require.Error(t, err, "%+v", cfg)
		}
	})
}
