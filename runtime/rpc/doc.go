// Package rpc carries calls over connections: requests with answers, in any order, from any
// number of goroutines, on every provider.
//
//	server, err := rpc.Listen(ctx, ia, "127.0.0.1:7000", rpc.Config{})
//	for {
//		select {
//		case r := <-server.Requests(): // nil when the server is closed
//			err = r.Reply(r.Payload()) // or in a goroutine, later
//		case <-other: // what else the program waits for
//		}
//	}
//
//	client, err := rpc.Dial(ctx, ia, "127.0.0.1:7000", rpc.Config{})
//	answer, err := client.Call(ctx, rpc.Call{Method: 1, Payload: []byte("hello")}, nil)
//
// A payload of up to Config.Message bytes is inside its message. A larger one goes by RDMA,
// without a copy: a call names registered memory of the caller's, from which the server reads
// (Call.Source) or into which it writes (Call.Sink). When Client.Call returns, for whatever
// reason, that memory is the caller's again.
//
// A call's deadline goes to the server with the call, and a cancel when its context ends; the
// handler sees both by [Request.Context]. When the connection ends, all calls under way fail
// with a [CallError], which says of each whether it may have run.
//
// # Flow
//
// A client has at most Config.Calls calls under way, or as many as the server takes if that is
// less; further ones wait. And neither end sends a message for which the other has no receive:
// each message says how many of the peer's have been taken, so each end knows how many are
// on their way, and keeps those beyond the peer's receives until it hears of more. An end that
// has taken half of its receives' number of messages and had nothing to send says so by a
// message of its own, for which the last receive is kept.
//
// # The wire format, version 1
//
// All numbers are big-endian. The private data of the request to connect, and that of the
// accept, is a hello:
//
//	0  "DATC"
//	4  version, 2 bytes: 1
//	6  calls, 2 bytes: the most calls under way that the end makes or takes
//	8  receives, 4 bytes: messages that may be on their way to this end
//	12 message, 4 bytes: the most bytes of a payload that this end takes
//
// An end that gets another magic or version, or zeros, ends the attempt. A message is a header
// and a payload:
//
//	0  kind, 1 byte: 1 CALL, 2 ANSWER, 3 CANCEL, 4 CREDIT
//	1  flags, 1 byte; of a CALL: bit 0 SOURCE, bit 1 SINK; else 0
//	2  code, 2 bytes; of a CALL its method, of an ANSWER 0 or the code of its failure; else 0
//	4  call, 4 bytes: a slot below calls in the low 16 bits, and its turn above; 0 in a CREDIT
//	8  taken, 4 bytes: how many of the peer's messages this end has taken, modulo 2^32
//	12 timeout, 4 bytes; of a CALL the milliseconds that its caller waits, 0 for ever; else 0
//	16 of a CALL with SOURCE, and then of one with SINK: address, length and context of the
//	   caller's memory, as [godat/runtime.RemoteSegment] encodes it
//
// A slot has one CALL at a time, and its turn grows by one with each. A CANCEL names the CALL
// that its end has sent last in a slot; the server answers it all the same, as each CALL. An end
// that gets a message which breaks these rules closes the connection.
package rpc
