package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"godat/ep"
	"godat/evd"
	"godat/examples/dattest/limit"
	"godat/examples/dattest/performance"
	"godat/examples/dattest/transaction"
	command "godat/examples/dattest/wire"
	"godat/hw"
	"godat/hw/event"
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
	scaled := func(n, least int) uint32 { return uint32(r.p.Scale.of(max(1, n), least)) }
	test := &command.Transaction{
		Iterations: scaled(m.iterations, 1), Threads: scaled(m.threads, 2), EPs: scaled(m.eps, 2),
		RSP: m.rsp, Validate: m.validate, Poll: m.poll, Ops: r.operations(m.ops),
	}
	if m.validate {
		test.Ops = transaction.WithBarriers(test.Ops)
	}
	operations := uint64(test.Iterations) * uint64(test.Threads) * uint64(test.EPs) * uint64(len(test.Ops))
	server := transaction.Side{IA: r.open(), Test: test, Server: true, CNO: m.cno, Graceful: true}
	client := transaction.Side{IA: r.open(), Test: test, Addr: server.IA.Attr().Address, CNO: m.cno, Graceful: true}
	run := func(ctx context.Context, side *transaction.Side) error {
		did, err := side.Run(ctx)
		if err == nil {
			assert.Equal(r, operations, did.Ops)
		}
		return err
	}
	both(r, 5*patience+time.Duration(operations)*100*time.Microsecond, func(ctx context.Context, ready func([]uint64) error) error {
		server.Ready = ready
		return run(ctx, &server)
	}, func(ctx context.Context, ports []uint64) error {
		client.Ports = ports
		return run(ctx, &client)
	})
}

// both runs the two sides of a test. The client begins when the server has called
// ready with what the client needs to know.
func both[T any](r *rig, limit time.Duration, server func(ctx context.Context, ready func(T) error) error, client func(context.Context, T) error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	known := make(chan T, 1)
	sides, ctx := errgroup.WithContext(ctx)
	sides.Go(func() error { return server(ctx, func(x T) error { known <- x; return nil }) })
	sides.Go(func() error {
		select {
		case x := <-known:
			return client(ctx, x)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	require.NoError(r, sides.Wait())
}

// operations parses the operations of a dattest command.
func (r *rig) operations(text string) []command.Op {
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
	test := &command.Performance{
		Iterations: uint32(r.p.Scale.of(s.count, 16)), Pipeline: uint32(s.pipeline), Poll: s.poll,
		Op: r.operations("client " + s.op)[0],
	}
	server := performance.Side{IA: r.open(), Test: test, Server: true}
	if strings.HasPrefix(r.p.IA, "ibv") && !server.IA.Attr().NotReadyWait {
		server.SendDelay = performance.TakeUpTime // siw, whose sends do not wait for a receive
	}
	client := performance.Side{IA: r.open(), Test: test, Addr: server.IA.Attr().Address}
	both(r, 5*patience, func(ctx context.Context, ready func(uint64) error) error {
		server.Ready = ready
		return errorOf(server.Run(ctx))
	}, func(ctx context.Context, port uint64) error {
		client.Port = port
		did, err := client.Run(ctx)
		if err == nil {
			assert.EqualValues(r, test.Iterations, did.Ops)
		}
		return err
	})
}

// exhaust makes up to n objects of a kind and closes them, twice, and requires that
// it makes as many the second time.
func (r *rig) exhaust(kind string, n int) {
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

// short and long are the operations of the C library's scripts: every kind both
// ways, of up to a few KiB in short and up to 128 KiB in long. sr returns one send
// each way.
const (
	short = `client RW 4096 1  server RW 2048 4  server RR 1024 1  client RR 2048 1
		client SR 1024 3 -f  server SR 256 3 -f`
	long = `client RW 32768 4  server RW 8192 4  server RR 16384 2  client RR 32768 1
		client SR 8192 3 -f  server SR 16384 4 -f`
)

func sr(size, segs int) string {
	return fmt.Sprintf("client SR %[1]d %[2]d  server SR %[1]d %[2]d  ", size, segs)
}

var transactionCases = []Case{
	transactionCase("TX-conn", "connect, one message each way", mix{iterations: 1, ops: sr(4096, 1)}),
	transactionCase("TX-trans", "messages back and forth", mix{iterations: 8192, ops: sr(4096, 1)}),
	transactionCase("TX-transm", "a mix of all operations, polling", mix{iterations: 4096, ops: short, poll: true}),
	transactionCase("TX-transmx", "a mix of long operations, polling", mix{iterations: 8192, ops: long, poll: true}),
	transactionCase("TX-transt", "four threads", mix{iterations: 4096, threads: 4, ops: sr(8192, 3)}),
	transactionCase("TX-transme", "the mix on four connections", mix{iterations: 4096, eps: 4, ops: short, poll: true}),
	transactionCase("TX-transmet", "the mix on two threads with four connections each", mix{iterations: 4096, threads: 2, eps: 4, ops: short}),
	transactionCase("TX-transmete", "the mix on four threads with four connections each", mix{iterations: 8192, threads: 4, eps: 4, ops: short}),
	transactionCase("TX-threads", "six threads", mix{iterations: 2048, threads: 6, ops: sr(8192, 3)}),
	transactionCase("TX-threadsm", "four threads with four connections each", mix{iterations: 2048, threads: 4, eps: 4, ops: sr(8192, 3)}),
	{ID: "TX-epa", Claim: "ten threads with ten to fifty connections each", run: func(r *rig) {
		for eps := 10; eps <= 50; eps += 10 { // 6 million messages each way at scale 1
			r.each(fmt.Sprint(eps), func(r *rig) {
				r.transact(mix{iterations: 4096, threads: 10, eps: eps, ops: sr(8192, 3)})
			})
		}
	}},
	{ID: "TX-validate", Claim: "what arrives is what was sent, read and written", run: func(r *rig) {
		for name, first := range map[string]string{
			"SR": "",
			"RR": "client RR 4096 2  server RR 512 1  ",
			"RW": "client RW 4096 2  ",
		} {
			r.each(name, func(r *rig) {
				r.transact(mix{iterations: 512, threads: 2, eps: 2, ops: first + sr(1024, 3), validate: true})
			})
		}
	}},
	transactionCase("TX-rsp", "through reserved service points", mix{iterations: 512, threads: 2, eps: 2, ops: sr(4096, 1), rsp: true}),
	transactionCase("TX-poll", "polling", mix{iterations: 4096, ops: sr(4096, 1), poll: true}),
	transactionCase("TX-cno", "waiting for a CNO", mix{iterations: 4096, eps: 4, ops: sr(4096, 1), cno: true}),
	{ID: "TX-regress", Claim: "many iterations, small and large, on one and on many connections", run: func(r *rig) {
		for name, m := range map[string]mix{
			"small":            {iterations: 10000, ops: sr(256, 1)},
			"large":            {iterations: 10000, ops: sr(1<<18, 1)},
			"1 thread, 8 EPs":  {iterations: 10000, eps: 8, ops: sr(1024, 1)},
			"4 threads, 8 EPs": {iterations: 10000, threads: 4, eps: 8, ops: sr(1024, 1)},
		} {
			r.each(name, func(r *rig) { r.transact(m) })
		}
	}},
	// TX-multi makes the client of each thread an adapter of its own.
	{ID: "TX-multi", Claim: "several clients of one server", run: func(r *rig) {
		server := r.node()
		s := server.listen()
		for i := range r.p.Scale.of(16, 3) {
			client, e := r.node().end(), server.end()
			s.join(client, e)
			for range i + 1 {
				say(client, e, 64)
				say(e, client, 64)
			}
		}
	}},
	// TX-quit makes a client tell the server to quit. The server answers, disconnects,
	// and closes its objects in an order in which none is in use.
	{ID: "TX-quit", Claim: "a server that is told to quit frees everything and closes", run: func(r *rig) {
		client, server := r.node().end(), r.node().end()
		s := server.node.listen()
		s.join(client, server)
		copy(client.mem.Bytes(), "quit")
		say(client, server, 4)
		require.Equal(r, "quit", string(server.mem.Bytes()[:4]))
		say(server, client, 4)
		server.disconnect(ep.Graceful)
		client.connection(event.Disconnected)
		r.ok(s.psp.Close(), server.ep.Close())
		for _, d := range []*evd.Dispatcher{s.cr, server.conn, server.recv, server.req} {
			require.NoError(r, d.Close())
		}
		r.ok(server.mem.Free(), server.node.pz.Close(), server.node.ia.CloseGraceful())
	}},
}

func transactionCase(id, claim string, m mix) Case {
	return Case{ID: id, Claim: claim, run: func(r *rig) { r.transact(m) }}
}

var performanceCases = []Case{
	streamCase("PF-rw", "writes of two segments, waited for", stream{op: "RW 4096 2", count: 2048, pipeline: 1}),
	streamCase("PF-rr", "long reads, waited for", stream{op: "RR 32768", count: 4096, pipeline: 1}),
	streamCase("PF-rw4", "writes of four long segments, waited for", stream{op: "RW 32768 4", count: 4096, pipeline: 1}),
	streamCase("PF-bw", "sixteen long writes outstanding, waited for", stream{op: "RW 65536 2", count: 2048, pipeline: 16}),
	streamCase("PF-latb", "writes of four bytes, waited for", stream{op: "RW 4", count: 8192, pipeline: 1}),
	streamCase("PF-latp", "writes of four bytes, polled for", stream{op: "RW 4", count: 100000, pipeline: 1, poll: true}),
}

func streamCase(id, claim string, s stream) Case {
	return Case{ID: id, Claim: claim, run: func(r *rig) { r.stream(s) }}
}

var limitCases = []Case{
	{ID: "LIM-IA", Claim: "adapters can be opened until there are no more, twice as many times", run: exhausts("limit_ia", most/10)},
	{ID: "LIM-PZ", Claim: "zones can be made until there are no more", run: exhausts("limit_pz", most)},
	{ID: "LIM-EVD", Claim: "dispatchers can be made until there are no more", run: exhausts("limit_evd", most)},
	{ID: "LIM-EP", Claim: "endpoints can be made until there are no more", run: exhausts("limit_ep", most)},
	{ID: "LIM-PSP", Claim: "service points can be made until there are no more", run: exhausts("limit_psp", most/4)},
	{ID: "LIM-LMR", Claim: "regions can be made until there are no more", run: exhausts("limit_lmr", most)},
	{ID: "LIM-RPOST", Claim: "an endpoint takes as many receives as its attributes say", run: func(r *rig) {
		for _, depth := range []int{1, 16, 100} {
			e := r.node().end(attr(func(a *ep.Attr) { a.MaxRecvDTOs = depth }))
			p := get(r, e.ep.Query)
			for i := range p.Attr.MaxRecvDTOs {
				e.postRecv(uint64(i), 4096)
			}
			full := func(why string) {
				assert.ErrorIs(r, e.ep.PostRecv(0, 0, e.mem.Segment(0, 4096)), hw.ErrInsufficientResources, why)
			}
			full("these are all")
			assert.NoError(r, e.ep.Reset(), "in UNCONNECTED it does nothing")
			full("and keeps the receives")
		}
	}},
	{ID: "LIM-SIZE_LMR", Claim: "a region that is too large is refused in order", run: func(r *rig) {
		r.exhaust("limit_size_lmr", most)
		_, err := r.node().pz.Alloc(math.MaxInt, hw.AllPrivileges)
		require.True(r, errors.Is(err, hw.ErrInsufficientResources) || errors.Is(err, hw.ErrLength), "%v", err)
	}},
	{ID: "LIM-W", Claim: "several goroutines may go to the limit at once", run: func(r *rig) {
		for _, kind := range []string{"limit_pz", "limit_evd", "limit_lmr", "limit_ep", "limit_psp"} {
			test, err := limit.Find(kind)
			require.NoError(r, err)
			require.NoError(r, errorOf(test.Results(r.soon(), limit.Config{IA: r.open(), Width: 4, Maximum: r.p.Scale.of(most/10, 4)})))
		}
	}},
}

func exhausts(kind string, n int) func(*rig) { return func(r *rig) { r.exhaust(kind, n) } }

// most is how many objects of one kind a limit case makes at most.
const most = 1000
