// Command bench tells what the ways of delivery cost on the machine that it runs on,
// beside what a program would use in place of the library.
//
//	go run ./bench            what a channel costs: a minute's run
//	go run ./bench latency    round trips between two goroutines
//	go run ./bench bandwidth  RDMA writes of several sizes
//	go run ./bench scale      messages over many connections
//	go run ./bench connect    connections made in a second
//	go run ./bench peers      the same work by others: gRPC, QUIC, and byte streams
//	go run ./bench rpc        calls of runtime/rpc beside gRPC, net/http, net/rpc and net
//	go run ./bench storage    interrupt or poll: a storage target and its host
//	go run ./bench results    bench/RESULTS.md: all tables of this machine
//	go run ./bench serve      the other side of dial
//	go run ./bench dial       round trips to another process or host
//	go run ./bench idle       what idle connections between two processes cost
//
// Each has --help. The README beside says how figures are taken, and what not to
// conclude from them. A run on a machine that was too busy to answer says so in its first
// line, and its exit status is 4. No figure makes a run fail.
//
// A row is proven by what ran in it: the loops of package mode say which one took the messages, and
// a row whose name is another is an error; nothing is shown.
//
// The packages below do the rest: mode has the ways of delivery as loops; lane what
// carries messages, with endpoints and without; load offers messages to a lane and
// measures one run; trial lets lanes take turns and drops what was disturbed; stats
// estimates; report shows; ends starts other processes of a measurement; host describes
// the machine and counts processor time.
//
// The smallest exchanges by one goroutine are benchmarks for `go test -bench`, whose instructions
// instructions.sh counts, named so that `benchstat -col /mode` compares them.
package main
