// Package rpc carries calls over connections: requests with answers, in any order, from any
// number of goroutines, on every provider.
//
//	server, err := rpc.Listen(ctx, ia, "127.0.0.1:7000", rpc.Config{})
//	err = server.Serve(ctx, 16, func(r *rpc.Request) ([]byte, error) {
//		return r.Payload(), nil
//	}) // until ctx ends
//
//	client, err := rpc.Dial(ctx, ia, "127.0.0.1:7000", rpc.Config{})
//	answer, err := client.Call(ctx, rpc.Call{Method: 1, Payload: []byte("hello")}, nil)
//
// A server that waits for other things, too, takes requests from [Server.Requests] in its select,
// and answers each by Reply or Fail, in any goroutine. [HandleJSON] and [Client.CallJSON] are for
// questions and answers that are values of the program's.
//
// The payload of a request or of an answer is inside its message. It has at most the smaller
// Config.Message of the two ends; a longer one is LENGTH_ERROR, and the call has not run. What is larger
// goes by RDMA, without a copy: a call names memory of the caller's, from which the server reads
// (Call.Source, SourceBytes) or into which it writes (Call.Sink, SinkBytes); Call.Written tells how
// far. When Client.Call returns, for whatever reason, that memory is the caller's again. A server
// whose bodies are files moves them by [Request.WriteFile] and [Request.ReadFile].
//
// The server gets a call's deadline with the call, and a cancel when the call's context ends; the
// handler sees both by [Request.Context]. The server is not stopped by either: it answers each
// request, by Reply or Fail, also one whose caller has gone.
//
// # Whose memory
//
// A handler has a [Request], the bytes of its Payload included, until it calls Reply or Fail;
// it may do so in any goroutine, later, and when the connection has ended meanwhile. What it
// wants to keep it copies before. An answer may be a part of the request's own payload. A
// server keeps no more requests than its connections may have calls under way, so a handler
// that never answers takes a slot of its client for as long as the connection lives.
//
// # Failures
//
// An [Error] is an answer: the handler's own, by Request.Fail, or this package's. Without an
// answer the error is a [CallError], with the cause: the end of the caller's context, or
// [ErrEnded] with why the connection ended. Its MayHaveRun is false if the server has
// certainly not begun the call, since the call was never sent, or the server refused it, or was
// shut down before. Then the program may make it again. It is true if the call was sent and no
// answer came: the handler may have begun it, or done it, or not have got it. Only the program
// knows whether a second time does harm. The program sets Call.Idempotent for a call that does none.
//
// A call that is made twice may also run late: its first handler may begin when the second one, or
// a later call of the same caller, has been answered. So "set x to 1" is not idempotent: late, it
// undoes "set x to 2". A number that the caller gives each change makes it idempotent: the server
// leaves out what it has done; the example ExactlyOnce shows how.
//
// With Config.Redial a client whose connection has ended connects anew, and makes calls again
// by that rule and no other: those that have not run, and those that are idempotent. It does not
// give up, whatever an attempt's error is, since the next server of that address may be another:
// each call has its context's time, and its error then says why there was no connection. Config.Log
// tells of connections that end and come. Dial itself makes one attempt, or with Config.Await as
// many as it takes.
//
// To end a server in order, as on SIGTERM, end the context of [Server.Serve], or call
// [Server.Shutdown] with a context that ends when it has taken long enough. Calls that it has
// begun are answered, and the others have not run: clients with Config.Redial make them again at
// the next server of that address. That one may start before: with Config.Await its Listen waits for
// the address.
//
// A client that stalls holds neither a handler nor a shutdown for ever. The server breaks its
// connection when 16 MiB of a Read or Write of its memory take longer than Config.Stall, when a
// Read or Write goes on for Config.Patience after the call's end, or when answers wait for
// Config.Stall and the client takes none. A server's errors name the client's address, the connection and the call.
//
// # Flow
//
// A client has at most Config.Calls calls under way, or as many as the server takes if that is
// less; further ones wait. And neither end sends a message for which the other has no receive:
// each message says how many of the peer's have been taken, so each end knows how many are
// on their way, and keeps those beyond the peer's receives until it hears of more. An end that
// has taken half as many messages as it has receives, without sending one, sends a CREDIT; each end
// keeps a receive for that.
//
// # Latency
//
// While the adapter's requests are measured ([godat/runtime.IA.MeasureLatency]), calls are, too, by
// method: the report "rpc methods" of a snapshot of the adapter has a [MethodSnapshot] for each.
//
// # Speed
//
// Over iwarp on the loopback, calls of 64 bytes to 1 MiB had 2.8 to 7.9 times the rate of
// gRPC's, for 0.11 to 0.36 of its processor time per call: go run ./bench rpc repeats that on another
// machine, beside net/rpc, net/http and QUIC, and bench/README.md has the figures.
//
// # The wire format, version 2
//
// All numbers are big-endian. The private data of the request to connect, and that of the
// accept, is a hello:
//
//	0  "DATC"
//	4  version, 2 bytes: 2
//	6  calls, 2 bytes: the most calls under way that the end makes or takes
//	8  receives, 4 bytes: messages that may be on their way to this end
//	12 message, 4 bytes: the most bytes of a payload that this end takes
//
// An end that gets another magic or version, or zeros, ends the attempt. The private data of a
// reject is the magic and the version, and in the 2 bytes behind them why: 1 the hello is not one of
// this version, 2 the server is being shut down, 6 it has no place for the connection. A message is a header
// and a payload:
//
//	0  kind, 1 byte: 1 CALL, 2 ANSWER, 3 CANCEL, 4 CREDIT, 5 END
//	1  flags, 1 byte; of a CALL: bit 0 SOURCE, bit 1 SINK; else 0
//	2  code, 2 bytes; of a CALL its method, of an ANSWER 0 or the code of its failure; else 0
//	4  call, 4 bytes: a slot below calls in the low 16 bits, and its turn above; 0 in a CREDIT and an END
//	8  taken, 4 bytes: how many of the peer's messages this end has taken, modulo 2^32
//	12 of a CALL the milliseconds that its caller waits, 4 bytes, 0 for ever; of an ANSWER the end
//	   of the furthest write into the sink, at most its length; else 0
//	16 of a CALL with SOURCE, and then of one with SINK: address, length and context of the
//	   caller's memory, as [godat/runtime.RemoteSegment] encodes it
//
// A slot has one CALL at a time, and its turn grows by one with each. A CANCEL names the CALL
// that its sender has sent last in that slot; the server answers it all the same, as each CALL. An end
// that gets a message which breaks these rules closes the connection. A server sends an END when it
// has answered each CALL that it began and begins no other one, and then ends the connection:
// a CALL without an answer has not run then.
package rpc
