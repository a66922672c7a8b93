// Package rpc carries calls over connections, on every provider: requests of any number of
// goroutines, and their answers, in any order.
//
//	server, err := rpc.Listen(ctx, ia, "127.0.0.1:7000", rpc.Config{})
//	err = server.Serve(ctx, 16, func(r *rpc.Request) ([]byte, error) {
//		return r.Payload(), nil
//	}) // until ctx ends
//
//	client, err := rpc.Dial(ctx, ia, "127.0.0.1:7000", rpc.Config{})
//	answer, err := client.Call(ctx, rpc.Call{Method: 1, Payload: []byte("hello")}, nil)
//
// In place of Serve, a server that waits for other things, too, takes the events of [Server.Requests] in
// its select, as those of a [godat/runtime.Listener]: [RequestOf] has the request, which the program answers
// by Reply or Fail, and the last event is [godat/hw/event.Closed]. With [HandleJSON] and [Client.CallJSON]
// the question and the answer are values of the program's.
//
// # Overload
//
// A handler does nothing for overload. The server never begins a call whose time is over, whose caller has
// left or whose connection has ended. It knows how long its handlers take and how many calls wait, so it
// refuses at once a call
// that would be answered too late: its error is a [CallError] with MayHaveRun false and an [Error] with
// CodeBusy, which says how long the call would have waited. Give each call a context with a deadline: a
// call without one waits for as long as it takes. However many calls come, the server answers as many in
// time as its handlers can do.
//
// Connections have turns: a client that asks for much waits behind itself, and holds no more workers than
// others that have calls waiting. The server cuts large transfers into pieces of 4 to 256 KiB (64 KiB at most
// while calls without memory are under way), gives transfers turns, and keeps as many bytes under way as the link
// carries in about a second. So a small call of the same
// client waits for a piece or two of a large one, and not for all of it. On a slow link that takes a while: where
// that matters, a program makes its large calls by a client of their own, whose connection has its own pieces
// under way.
// A handler that has waited for a lock or a disk looks at [Request.Context] before it goes on.
//
// # Payloads
//
// A short payload is inside the message of its request or answer. It has at most as many bytes
// as the smaller Config.Message of both ends: a call with a longer request fails with
// LENGTH_ERROR, unsent; one with a longer answer fails with CodeTooLong. [Client.CallJSON] alone takes
// answers of up to 64 MiB, whose length it does not know before.
//
// A long payload goes by RDMA between memory of the caller's and memory of the server's. The call
// names memory from which the server may read (Call.Source or SourceBytes) and memory to which it
// may write (Call.Sink or SinkBytes). The handler then moves as many bytes as it wants by
// [Request.Read], [Request.Write], and the methods like them: ReadBytes, ReadAll and WriteBytes
// take memory that is not registered, ReadFile and WriteFile take files. Call.Written tells the
// caller how far the server has written. When [Client.Call] returns, also with an error, that
// memory is the caller's again.
//
// A deadline has to leave a long payload the time that it takes: a megabyte takes 40 s at 200 kbit/s. A call
// whose time is over keeps nothing of what moved, and a second one begins with the first byte. So a program
// that repeats a call with the same deadline may never come to an end: it gives such calls more time, or
// makes them shorter.
//
// A caller who gets a value does not know its length before. It names a sink as long as the value may be; the
// handler writes what fits and answers with the value's length, which tells a caller with too little what to
// ask for, and Call.Written says how much came.
//
// # Metadata, and what runs around calls
//
// A trace id or a tenant goes with a call beside its payload: [WithMetadata] puts it into the context of
// the call, and the handler gets it from [Request.Metadata]. Config.AroundCall of a client runs around each
// call, and Config.AroundHandler of a server around each handler, so that no caller and no handler needs to
// change: see the example Metadata. Metadata takes no room of the payload's. A call without any sends no
// byte for that, and allocates nothing. A call with more metadata than the smaller Config.Metadata
// of both ends fails with LENGTH_ERROR, unsent.
//
// # The end of a call
//
// The deadline of a call's context goes to the server with the call. If the context ends otherwise,
// a cancel follows. The handler learns of both by [Request.Context], and neither stops it: the
// server answers each request, also one whose caller has gone.
//
// A request and its payload are the handler's until it calls Reply or Fail, or returns to Serve. A
// program that takes requests from Requests may answer them later, and in any goroutine, also when
// their connection has ended. The handler copies what it needs longer. The answer may be a part of
// the request's own payload. A use after the answer is INVALID_STATE, and reaches no other call. A
// request without an answer counts as one of its client's Config.Calls for as long as the connection
// lives.
//
// If the context of a call with memory ends, the caller waits until that memory is its own again. The server tells it
// so at once unless a Read or Write of that call is under way; the handler may go on, but its further Reads and
// Writes are refused. The connection ends, with its other calls, only if a Read or Write goes on for Config.Patience
// in which nothing moves, or for Config.Stall. On a slow link pieces that are under way may take longer than
// Patience: the caller waits for them. Only TCP tells what moves (iWARP on Linux and macOS); elsewhere Patience is all the time there is.
//
// # Failures
//
// The error of a call that was answered is an [Error]: the handler's own, or this package's with
// one of the codes below CodeUser. The error of a call that got no answer in time is a [CallError],
// with the cause: the end of the caller's context, or [ErrEnded] and why the connection ended. A
// call with wrong arguments has DAT's errors, such as LENGTH_ERROR, which errors.Is finds by
// [godat/hw.ErrLength]; it is not sent.
//
// CallError.MayHaveRun is false if the server has certainly not begun the call: the call was never
// sent, the server refused it, or the server was shut down before. Then the program may make the
// call again. MayHaveRun is true if the call was sent: its handler may have done it, or a part of
// it, or nothing. Only the program knows whether a second time does harm. For a call that does
// none it sets Call.Idempotent.
//
// A call that is made twice may also run late: its first handler may begin when the second one, or
// a later call of the same caller, has been answered. So "set x to 1" is not idempotent: late, it
// undoes "set x to 2". To make it so, the caller gives each change a number, and the server leaves
// out changes that it has made: see the example ExactlyOnce. The server keeps the last number of a client, and
// its answer, for as long as one of that client's changes may still come: until the deadline of the last one
// has passed, and its handlers have returned. If calls have no deadline, or a client may start anew
// with a change that it remembers, that is for ever. A server whose own restart must not forget keeps the
// numbers where it keeps the values.
//
// With Config.Redial a client whose connection has ended connects anew, as often as it takes. It
// then makes calls again that have not run, and those that are idempotent, these up to ten times, but no
// others. Meanwhile
// calls wait until their contexts end, and their errors say why there is no connection. Dial itself
// makes one attempt, or with Config.Await as many as it takes. Config.Log tells of connections that
// end and come.
//
// A probe of a server's health makes a call: Dial alone says that the server listens and takes connections.
// [Client.Snapshot] says why there is no connection, and [Server.Snapshot] how many requests wait and for how long.
//
// To end a server in order, as on SIGTERM, end the context of [Server.Serve], or call
// [Server.Shutdown] with a context that ends after the longest time that it may take. The server
// answers calls that it has begun, and refuses the others: clients with Config.Redial make those
// again at the next server of that address. The next server may start before the first has ended:
// with Config.Await its Listen waits for the address, which is free when the shutdown of the first
// begins. Clients go to the next server then, and calls under way end on the old connection. So for a
// while both servers have handlers: if these write the same files, the next server takes a lock on the files
// before it reads them and listens. Its clients wait meanwhile.
//
// A client that stalls does not hold a handler or a shutdown for ever. The server breaks its connection
//
//   - when no piece of its Reads and Writes moves for Config.Stall though some are under way;
//   - when a Read or Write goes on after the call's end for Config.Patience without an octet that moves;
//   - when answers wait for Config.Stall because the client takes none.
//
// A transfer that waits for its turn is not late, however slow the link:
// one that moves a piece in Config.Stall is not broken. A server's errors name the client's address, the connection and the call.
//
// # Flow
//
// A client has at most Config.Calls calls under way, its own number or the server's, whichever is
// less; more calls wait. Neither end sends a message for which the other has no receive. For that
// each message says how many of the peer's messages its sender has taken. So each end knows how
// many of its own are on their way, and keeps those for which the peer has no receive. An end that
// has taken half as many messages as it has receives, without sending one, sends a CREDIT, which
// says no more than that. Each end keeps a receive for it.
//
// # Latency
//
// While the adapter measures its requests ([godat/runtime.IA.MeasureLatency]), rpc measures calls,
// too. The report "rpc methods" of a snapshot of the adapter has a [MethodSnapshot] for each
// method, with these times and the counts of calls. Config.Methods names the methods there.
//
// # Speed
//
// go run ./bench rpc measures calls of 64 bytes to 1 MiB beside those of gRPC as it comes and tuned,
// net/http, net/rpc and a plain server on net, in two processes each. bench/README.md has the figures,
// and says for which calls to take something else.
//
// # The wire format, version 2
//
// All numbers are big-endian. The private data of the request to connect, and that of the accept,
// is a hello:
//
//	0  "DATC"
//	4  oldest, 2 bytes: the oldest version that the end speaks
//	6  calls, 2 bytes: the most calls under way that the end makes or takes
//	8  receives, 4 bytes: messages that may be on their way to this end
//	12 message, 4 bytes: the most bytes of a payload that this end takes
//	16 metadata, 4 bytes: the most bytes of metadata that this end takes; a hello that ends before
//	   has 0
//	20 newest, 2 bytes: the newest version that the end speaks; a hello that ends before, or has 0, speaks
//	   the oldest alone
//
// Both ends use the newest version that both speak. Each release speaks the version of the release before, so a
// service is renewed one process after the other. A hello has these fields in all versions.
//
// An end that gets another magic, versions of which it speaks none, or an impossible number ends the attempt.
// The private data of a reject is the magic, the oldest version, in 2 bytes the reason, and the newest
// version. The reason is 1 if the hello is not one that this end takes, 2 if the server is being shut
// down, 6 if it has no place for the connection.
//
// A message is a header and a payload:
//
//	0  kind, 1 byte: 1 CALL, 2 ANSWER, 3 CANCEL, 4 CREDIT, 5 END
//	1  flags, 1 byte; of a CALL: bit 0 SOURCE, bit 1 SINK, bit 2 METADATA, bit 3 LATER,
//	   bit 4 FETCH; else 0
//	2  code, 2 bytes; of a CALL its method, of an ANSWER 0 or the code of its failure; else 0
//	4  call, 4 bytes: a slot below calls in the low 16 bits, and its turn above; 0 in a CREDIT and an END
//	8  taken, 4 bytes: how many of the peer's messages this end has taken, modulo 2^32
//	12 of a CALL the milliseconds that its caller waits, 4 bytes, 0 for ever; of an ANSWER the end
//	   of the furthest write into the sink, at most its length; else 0
//	16 of a CALL with SOURCE, and then of one with SINK: address, length and context of the
//	   caller's memory, as [godat/mem.RemoteSegment] encodes it; then of one with METADATA: its
//	   length, 2 bytes, and for each key, in their order and each once, the lengths of the key, 1 byte,
//	   and the value, 2 bytes, the key and the value, none of them empty
//
// A CALL with LATER says that its caller fetches an answer that is longer than a message. The server may
// keep that, and send an ANSWER with code 7 and the length of what it keeps, 4 bytes. The next CALL of that
// slot with FETCH and a SINK has it written there. The server drops it at the slot's next CALL, and after a
// while. An end sends METADATA, LATER and FETCH to one alone whose hello has metadata.
//
// A slot has one CALL at a time, and its turn grows by one with each. A CANCEL names the last CALL
// of its slot; the server answers that CALL all the same. An end that gets a message which breaks
// these rules closes the connection. A server that is being shut down sends an END when it has
// answered each CALL that it began, and then ends the connection: a CALL without an answer has not
// run then.
package rpc
