package conformance

import (
	"fmt"

	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

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
			if err := client.ep.Connect(s.at()); err != nil {
				r.Fatal(err)
			}
			if err := s.request().Accept(e.ep, nil); err != nil {
				r.Fatal(err)
			}
			client.established()
			e.established()
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
		s := server.listen()
		s.join(client, server)
		copy(client.mem.Bytes(), "quit")
		say(client, server, 4)
		require.Equal(r, "quit", string(server.mem.Bytes()[:4]))
		say(server, client, 4)
		server.disconnect(dat.Graceful)
		client.connection(dat.Disconnected)
		require.NoError(r, s.psp.Close())
		require.NoError(r, server.ep.Close())
		for _, d := range []*dat.Dispatcher{s.cr, server.conn, server.recv, server.req} {
			require.NoError(r, d.Close())
		}
		require.NoError(r, server.mem.Free())
		require.NoError(r, server.pz.Close())
		require.NoError(r, server.ia.CloseGraceful())
	}},
}

func transactionCase(id, claim string, m mix) Case {
	return Case{ID: id, Claim: claim, run: func(r *rig) { r.transact(m) }}
}
