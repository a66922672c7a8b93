// Package raftgodat is a transport for hashicorp/raft over RDMA: a raft.Transport on
// godat/runtime/rpc.
//
//	ia, err := dat.Open(ctx, "iwarp:10.0.0.1")
//	transport, err := raftgodat.New(ctx, ia, "10.0.0.1:7000", raftgodat.Config{})
//	r, err := raft.NewRaft(config, fsm, logs, stable, snapshots, transport)
//
// Requests of up to 16 KiB are inside a message. Larger ones, and the chunks of a snapshot, are read by
// the target by RDMA: entries are decoded in place, without a copy. Heartbeats have a
// connection of their own for each peer, so no entries are ahead of them. Over TLS the transport runs
// when the adapter's provider does, as package rpc.
//
// # Order and back-pressure
//
// A pipeline has Config.Pipeline requests under way at most; the next AppendEntries waits. The
// target gives them to raft in their order. A chunk of a snapshot is answered when raft has read
// it, and each has Config.Timeout for that, so a snapshot of any size may take as long as it makes
// progress. The answer behind the last chunk, for which raft restores the snapshot, has that time for each
// 256 KiB, as in raft's own transport.
//
// # Failures
//
// An error that the raft of the target answered is an [EngineError]. Any other error is the
// transport's: the target is not reached, the connection has ended, or no answer came in time. A raft that was shut
// down answers no heartbeat; the transport says [ErrNoAnswer] in its place at once.
package raftgodat
