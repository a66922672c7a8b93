// Package peers checks that nothing which peers do ends or harms a server.
//
// Five servers run as processes of their own over iwarp: the examples kv, blockstore and
// nvmeof, an echo of messages whose handlers are goroutines (connecho), and one of streams
// (streamecho). A program of peers, drawn from bytes, connects to one of them and does what the
// public API lets a peer do: sends, RDMA and atomics of each size and flag, with contents that
// are requests of the server, damaged ones, or none; and it leaves in order, abruptly or
// half-way. Then the judge asks: is the server alive, does it answer a well-behaved client with
// the right data, and has it given back what the peers have cost.
//
//	program_test.go       draws a program from bytes
//	request_test.go       what a server's clients say
//	play_test.go          plays a program
//	clients_test.go       plays peers that use the packages of a server's clients
//	server_test.go        builds, starts and watches the servers
//	judge_test.go         the well-behaved clients, and what a server may hold
//	peers_linux_test.go   the tests, which count what a server holds as Linux tells it
//
// A failure prints the program, its bytes and its seed, and what the server has written to
// standard error. How a server's goroutines interleave is not the program's choice, so a program
// may have to be played more than once:
//
//	go test ./check/peers -run NoProgram -peers.seed 7 -peers.programs 50 -peers.same
package peers
