// Package runtime is what a program imports, as dat:
//
//	import dat "godat/runtime"
//
// [Open] opens an interface adapter ([IA]) by the name of its provider: "loop" for
// memory inside the process, "iwarp" for TCP, "ibv" for verbs devices if the program
// imports godat/hw/ibv. The adapter makes all objects that live on it, and its Close
// closes them. A post returns at once. Each request that it accepts ends in exactly one
// completion, which comes as an event to the dispatcher that the program has chosen.
//
// A program imports other packages beside this one for what lives on an adapter:
// endpoints, service points and requests are in [godat/ep], dispatchers in [godat/evd],
// memory in [godat/mem], events in [godat/hw/event], operations, flags, privileges, statuses and errors
// in [godat/hw]. Each thing has one name, where go doc shows it with its methods:
//
//	go doc godat/ep Endpoint.PostSend
//
// The file datapi.md has the Go equivalent of each C call and constant of DAT, and moved.md the new
// names of what this package once had.
//
// # Open, ask, close
//
//   - [Open] an adapter by name, with options: [WithProvider], [WithVersion], [WithThreadSafe], [WithParams], [WithSlog], [WithTrace], [WithLatency], [WithUpcalls], [WithPoller], [WithAsync]
//   - which names there are: [Providers]; about one that is not open: [Describe]
//   - what the adapter is and can do: [IA.Attr], [IA.Async], [IA.Name]
//   - what has happened on it: [IA.Counters], [IA.ResetCounters]; the memory that it has: [IA.MemoryStats]; all that lives on it now: [IA.Snapshot], to which a program adds: [IA.Report], [Describer], [Troubled]; how long requests take: [IA.MeasureLatency], [IA.MeasuresLatency], and other durations: [evd.NewHistogram]
//   - a page that shows all that, and what is wrong: package [godat/runtime/inspect]
//   - in Go's own profiles the library's goroutines have the label godat; those of callbacks have the dispatcher's name, too. A trace of runtime/trace has a task of each connection that began during it
//   - the adapter of a handle: [IAOf]; a value attached to one: [IA.SetConsumerContext], [IA.ConsumerContext]
//   - [IA.Close] closes all that lives on it; [IA.CloseGraceful] refuses while anything does
//
// # Connections with all that they need
//
//   - [IA.Dial] connects to "host:port"; [IA.Listen] listens there
//   - [IA.NewPaired], [Pairing.Local] and [Pairing.Connect] connect by values that the two programs exchange themselves; [Pairing.Close] gives up
//   - a [Listener]: [Listener.Requests] to [Listener.Accept], [Listener.AcceptWith] or [ep.CR.Reject], [Listener.Addr], [Listener.Dial] for connections on its own channel
//   - [Conn.Events] and [Listener.Events] are where receives and ends come; [ConnOf] tells whose; [Conn.Batches] and [Listener.Batches] are the same for many at a time; [Conn.Receive] waits for a message
//   - messages: [Conn.Message] takes one from its event; [Conn.Buffer] is for a new one, for which [Conn.WaitBuffer] waits; [Conn.Send] and [Conn.Release] give buffers back; [Conn.SendBytes] copies
//   - many messages at once: [Conn.Queue], [Conn.QueueInvalidate], [Conn.Outbox], [Conn.Flush]
//   - polling for a connection's completions ([ConnConfig].Queue): [Conn.Dequeue]
//   - about the connection: [Conn.ID], [Conn.LocalAddr], [Conn.RemoteAddr]; about the peer: [Conn.Private]; memory of the connection's own, for RDMA: [Conn.Alloc], [Conn.Register], [Conn.PZ]
//   - operations that a goroutine waits for, such as RDMA reads: [Conn.Do]
//   - the end: [Conn.Shutdown], [Conn.Close], [Listener.Shutdown], [Listener.Close]; [Listener.Stop] takes no new ones
//
// Package [godat/runtime/stream] makes byte streams of such connections: net.Conn,
// net.Listener and DialContext, for servers that are written for net. Package [godat/runtime/rpc]
// carries calls with answers: a program that uses it needs little of this package but [Open] and
// [IA.Close].
//
// # Memory
//
//   - a zone: [IA.NewPZ], [mem.PZ.Close]
//   - a region: [mem.PZ.Alloc] of new memory, [mem.PZ.Register] of the program's, [mem.PZ.RegisterLMR] of another region's, [mem.PZ.RegisterShared] of what an id names; [mem.PZ.NewLoan] of what callers lend it by [mem.LMR.Lend] and take back by [mem.LMR.TakeBack]
//   - a region's memory: [mem.LMR.Bytes]; parts of it for posts, [mem.LMR.Segment], and for peers, [mem.LMR.Remote]
//   - what peers need to know: [mem.RemoteSegment.AppendBinary], [mem.ParseRemoteSegment]
//   - about a region: [mem.LMR.Query], [mem.LMR.Context], [mem.LMR.RemoteContext], [mem.LMR.PZ]; its end: [mem.LMR.Free]
//   - calls that check the segments and do nothing else, because no provider needs more: [IA.SyncRDMARead], [IA.SyncRDMAWrite]
//   - a pool of buffers: [mem.PZ.NewBufferPool], [mem.BufferPool.Get], [mem.BufferPool.Wait], [mem.BufferPool.At], [mem.BufferPool.Snapshot], [mem.BufferPool.Close]
//   - a buffer: [mem.Buffer.Bytes], [mem.Buffer.Cap], [mem.Buffer.Resize], [mem.Buffer.Write], [mem.Buffer.Segment], [mem.Buffer.Remote], [mem.Buffer.Index], [mem.Buffer.Put]
//   - to refuse uses of a buffer while an operation has it: [mem.Buffer.Lend], [mem.Buffer.Return]
//
// # Windows
//
//   - [mem.PZ.NewRMR] for a zone's endpoints, [ep.Endpoint.NewRMR] for one endpoint
//   - [ep.Endpoint.PostBind] binds it to memory, and with the zero [mem.Binding] unbinds it; [ep.RMROf] is the window of a completion
//   - [ep.Endpoint.PostSendInvalidate] ends a peer's window; [ep.Endpoint.PostRDMAReadToRMR] reads into one
//   - [mem.RMR.Query], [mem.RMR.PZ], [mem.RMR.Free]
//
// # Connect
//
//   - an endpoint: [IA.NewEndpoint], [ep.Endpoint.Context], [ep.Of]
//   - to connect: [ep.Endpoint.Connect], [ep.Endpoint.CommonConnect] to "host:port", [ep.Endpoint.DupConnect] to where another is
//   - by values that the two programs exchange: [ep.Endpoint.PairAddr], [ep.Endpoint.Pair]
//   - to listen: [IA.NewPSP] on a qualifier, [IA.NewRSP] for one endpoint, [IA.NewCSP] at "host:port"
//   - where it listens: [ep.PSP.Qual], [ep.PSP.Addr], [ep.PSP.Query], [ep.RSP.Qual], [ep.RSP.Query], [ep.CSP.Addr], [ep.CSP.Query]
//   - a request: [ep.RequestOf], [ep.CR.Query], and then [ep.CR.Accept], [ep.CR.Reject] or [ep.CR.Handoff]
//   - about an endpoint: [ep.Endpoint.State], [ep.Endpoint.Status], [ep.Endpoint.Query], [ep.Endpoint.Reads], [ep.Endpoint.Counters], [ep.Endpoint.ResetCounters], [ep.Endpoint.Snapshot], [ep.Endpoint.Flow], [ep.Endpoint.Trace]; where its messages come in: [ep.Endpoint.Watcher]
//   - to change it: [ep.Endpoint.Modify]
//
// # Post
//
//   - messages: [ep.Endpoint.PostSend], [ep.Endpoint.PostRecv], [ep.Endpoint.PostSendInvalidate]
//   - the peer's memory: [ep.Endpoint.PostRDMAWrite], [ep.Endpoint.PostRDMARead], [ep.Endpoint.PostRDMAWriteImmediate]
//   - atomics: [ep.Endpoint.PostFetchAdd], [ep.Endpoint.PostCompareSwap]
//   - many at once: [ep.Endpoint.PostBatch], [ep.Endpoint.PostRecvBatch]; gathered first, [ep.NewOutbox]: [ep.Outbox.Add], [ep.Outbox.Next], [ep.Outbox.Flush], [ep.Outbox.Reset]
//
// # When there is no room
//
// A post never waits. Without room it posts nothing, changes nothing, and returns an [hw.Error] that
// matches [hw.ErrInsufficientResources]; its Sub says what is full, and its text how full. The program
// takes events, which make room, and then posts again. If that happens often, it makes what is full
// larger, or sends less at a time.
//
//   - [hw.ResourceTEVD]: the dispatcher has no place for the event. Take events from it; or a larger [evd.Config], its QLen, of 2 places for each connection and one for each request and receive
//   - [hw.ResourceCredits]: the endpoint has as many operations outstanding as it was made for. Take the events of some; or a larger MaxRequestDTOs or MaxRecvDTOs of [ep.Attr], or Depth of [ConnConfig]
//   - [hw.ResourceSRQ]: the same of a shared receive queue. Wait until messages have come, or [ep.SRQ.Resize]
//   - [hw.ResourceMemory], of [Conn.Buffer] and [Conn.SendBytes]: all buffers for messages are in use. [Conn.WaitBuffer] waits for one
//   - [evd.Dispatcher.PostSoftware] returns [hw.ErrQueueFull], as in DAT
//
// [ep.Endpoint.PostBatch] says how many of its requests it has posted before; an [ep.Outbox] keeps those
// that it could not, for another Flush.
//
// # Take events
//
//   - [IA.NewDispatcher] makes a dispatcher, and [evd.Mode] says how it delivers:
//   - a channel of events: [evd.Dispatcher.C]
//   - a channel of batches: [evd.Dispatcher.Batches], [evd.Batch.Events], [evd.Batch.Release]
//   - a callback: [evd.Config], its field Callback
//   - a poll: [evd.Dispatcher.Dequeue]; a wait: [evd.Dispatcher.Wait]; an iterator: [evd.Dispatcher.Events]
//   - a function that the completing goroutine calls: [evd.Config], and [evd.Dispatcher.Asks] and [evd.Dispatcher.Ask] for a goroutine that waits for it
//   - the requests of one worker: [evd.Dispatcher.Route], [evd.Route.C], [evd.Route.Close]
//   - one request: [evd.Dispatcher.NewOneShot], [evd.OneShot.Wait], [evd.OneShot.C], [evd.OneShot.Release]
//   - many dispatchers at once: [IA.NewCNO], [evd.CNO.Wait], [evd.CNO.Trigger], [evd.CNO.ModifyAgent], [evd.CNO.FD] (a descriptor for epoll), [evd.CNO.Query], [evd.CNO.Close]; which dispatchers trigger it: [evd.Dispatcher.ModifyCNO], [evd.Dispatcher.Enable], [evd.Dispatcher.Disable]
//   - what is held back: [evd.Dispatcher.Flush]; events of the program's own: [evd.Dispatcher.PostSoftware]
//   - about a dispatcher: [evd.Dispatcher.Mode], [evd.Dispatcher.Query], [evd.Dispatcher.Counters], [evd.Dispatcher.ResetCounters], [evd.Dispatcher.Snapshot]; to change it: [evd.Dispatcher.Resize], [evd.Dispatcher.SetUnwaitable], [evd.Dispatcher.ClearUnwaitable]; its end: [evd.Dispatcher.Close]
//
// # What an event says
//
//   - whether it went well: [event.Event.Err]; that it is a connection's last: [event.Event.Ended]; why: [event.Event.Cause]
//   - whose it is: [ep.Of], [ConnOf], [ep.RMROf], [ep.SRQOf], [ep.RequestOf]
//   - by kind: [event.Event.Private], [event.Event.Software], [event.Event.Async]
//   - what came with a message: [event.Event.Immediate], [event.Event.InvalidatedContext]
//
// # Shared receive queues
//
//   - [IA.NewSRQ], [ep.SRQ.PostRecv], [ep.SRQ.Query], [ep.SRQ.Resize], [ep.SRQ.Close]
//   - watermarks: [ep.SRQ.SetLowWatermark], [ep.Endpoint.SetWatermark]; what an endpoint has taken: [ep.Endpoint.RecvQuery]
//
// # Errors and causes
//
//   - calls return an [hw.Error]: errors.Is with [hw.ErrInvalidState] and the other Err variables tells its type; [hw.Strerror] tells a C return code's
//   - completions that failed: [hw.StatusError]; connections that failed: [event.Error], and the [hw.Cause]
//   - errors that belong to no call, and those of devices: [IA.Async]
//   - a provider that panicked: [ProviderPanic]
//
// # End a connection, close objects
//
//   - [ep.Endpoint.Disconnect], Graceful or Abrupt; [ep.Endpoint.Reset] to connect once more; [ep.Endpoint.Close]
//   - [ep.PSP.Close], [ep.RSP.Close], [ep.CSP.Close] stop listening
//   - the order: service points, endpoints, shared receive queues, then what these use: dispatchers, CNOs, windows, regions, zones. [IA.Close] keeps it by itself
//
// # What runs
//
// On a device whose completion queues must be polled, an adapter runs one goroutine. If the program
// names processors for it ([PollerConfig]), it runs a thread on these instead, and one goroutine for each dispatcher
// that gets such completions. Each of them sleeps until the device wakes it, unless the next
// completion is likely to come sooner than that takes. For dispatchers with a callback it runs the tasks of a pool. Close
// ends all of them. Providers have goroutines of their own; see their documentation.
package runtime
