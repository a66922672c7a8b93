package conformance

import (
	"context"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"godat/examples/dattest/limit"
	"godat/examples/dattest/performance"
	"godat/examples/dattest/transaction"
	command "godat/examples/dattest/wire"
)

// The transaction, performance and limit cases are those of dapltest's scripts.
// They run on the engine of examples/dattest, which reports how fast they are; here
// they must be correct.

// mix is a transaction test: threads of a client and a server, each with several
// connections, repeat a list of operations. Its fields are the options of a dattest
// command.
type mix struct {
	iterations, threads, eps int // before scaling
	ops                      string
	poll, cno, rsp, validate bool
}

// transact runs the transaction test of a mix.
func (r *rig) transact(m mix) {
	r.Helper()
	scaled := func(n, least int) uint32 { return uint32(r.p.Scale.of(max(1, n), least)) }
	test := &command.Transaction{
		Iterations: scaled(m.iterations, 1), Threads: scaled(m.threads, 2), EPs: scaled(m.eps, 2),
		RSP: m.rsp, Validate: m.validate, Poll: m.poll, Ops: r.operations(m.ops),
	}
	if m.validate {
		test.Ops = transaction.WithBarriers(test.Ops)
	}
	operations := uint64(test.Iterations) * uint64(test.Threads) * uint64(test.EPs) * uint64(len(test.Ops))
	ctx, cancel := context.WithTimeout(context.Background(), 5*patience+time.Duration(operations)*100*time.Microsecond)
	defer cancel()
	ports := make(chan []uint64, 1)
	server := transaction.Side{
		IA: r.open(), Test: test, Server: true, CNO: m.cno, Graceful: true,
		Ready: func(p []uint64) error { ports <- p; return nil },
	}
	client := transaction.Side{IA: r.open(), Test: test, Addr: server.IA.Attr().Address, CNO: m.cno, Graceful: true}
	sides, ctx := errgroup.WithContext(ctx)
	run := func(side *transaction.Side) error {
		did, err := side.Run(ctx)
		if err == nil {
			assert.Equal(r, operations, did.Ops)
		}
		return err
	}
	sides.Go(func() error { return run(&server) })
	sides.Go(func() error {
		select {
		case client.Ports = <-ports:
			return run(&client)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	require.NoError(r, sides.Wait())
}

// operations parses the operations of a dattest command.
func (r *rig) operations(text string) []command.Op {
	r.Helper()
	ops, err := command.ParseOps(strings.Fields(text))
	require.NoError(r, err)
	return ops
}

// stream is a performance test: count operations of one kind with pipeline of them
// outstanding, and then as many one at a time.
type stream struct {
	op              string
	count, pipeline int // the count before scaling
	poll            bool
}

func (r *rig) stream(s stream) {
	r.Helper()
	test := &command.Performance{
		Iterations: uint32(r.p.Scale.of(s.count, 16)), Pipeline: uint32(s.pipeline), Poll: s.poll,
		Op: r.operations("client " + s.op)[0],
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*patience)
	defer cancel()
	port := make(chan uint64, 1)
	server := performance.Side{
		IA: r.open(), Test: test, Server: true, Ready: func(p uint64) error { port <- p; return nil },
	}
	if strings.HasPrefix(r.p.IA, "ibv") && !server.IA.Attr().NotReadyWait {
		server.LetIn = performance.Moment // siw, whose sends do not wait for a receive
	}
	client := performance.Side{IA: r.open(), Test: test, Addr: server.IA.Attr().Address}
	sides, ctx := errgroup.WithContext(ctx)
	sides.Go(func() error { _, err := server.Run(ctx); return err })
	sides.Go(func() error {
		select {
		case client.Port = <-port:
		case <-ctx.Done():
			return ctx.Err()
		}
		did, err := client.Run(ctx)
		if err == nil {
			assert.EqualValues(r, test.Iterations, did.Ops)
		}
		return err
	})
	require.NoError(r, sides.Wait())
}

// exhaust makes up to n objects of a kind and closes them, twice, and requires that
// it makes as many the second time.
func (r *rig) exhaust(kind string, n int) {
	r.Helper()
	test, err := limit.Find(kind)
	require.NoError(r, err)
	cfg := limit.Config{
		Provider: r.p.IA, Options: r.p.options(), Width: 1, Maximum: r.p.Scale.of(n, 8), Largest: 1 << 26,
	}
	first, err := test.Results(r.soon(), cfg)
	require.NoError(r, err)
	require.NotRegexp(r, ": 0$", first[0])
	second, err := test.Results(r.soon(), cfg)
	require.NoError(r, err)
	assert.Equal(r, first, second, "the second time")
}
