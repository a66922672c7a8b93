// Package inspect shows what lives on adapters, on a page for people and as JSON for programs:
//
//	http.Handle("/debug/godat/", inspect.New(ia))
//
// A program without an HTTP server calls [Serve]; the examples do, with --inspect.
//
// The page of an adapter begins with what is wrong with it, and with the other adapters that [New] was given. One line for each trouble names the connection,
// the dispatcher or the listener, and says what to look at. A cause comes first: a line that says why a peer is missed
// before one that misses it ([Missing]), and one of a program that knows the cause before what users feel of it ([Causing]).
// Below are tables, which a visitor sorts and filters, and the story of a connection. All of it is one document that
// fetches nothing from elsewhere; its script only renews the page, which works without it.
// With ?format=json the same is JSON. A [Handler] is an expvar.Var, too:
//
//	expvar.Publish("godat", handler)
//
// The page may stay on: it takes GET, HEAD and the POSTs below, and shows no payloads. It shows two texts of
// programs: one of at most 64 bytes with which a program rejected a connection, in the cause;
// and the start of the last error with which a handler of package rpc failed.
// A POST from the page itself switches on what the program allows, and nothing else: [Handler.LetMeasure] and
// [Handler.AllowTraces]. But the page names peers, so it belongs on an address that only
// operators reach. On a loopback address it answers only when asked for an address, localhost, or a name of
// [Handler.AllowHosts], so that no other site's script reads it under a name of that site. Requests share a snapshot
// that is taken at most once a second. A request renders at most one page of a table, and at most 4 requests render at a time.
// Nothing runs while nobody asks.
//
// What programs and packages report of themselves ([godat/runtime.IA.Report]) has a list for each
// kind: rpc's clients, servers and connections are there, and a stream's own numbers stand with its
// endpoint. A row that is a [godat/runtime.Troubled] says itself what is wrong with it.
//
// The page names its process: program, version, commit, host and number, and how much it uses of the
// descriptors and the memory that it may have. An object's number on the page is its number in the log.
// All sums count from the opening of the adapter, with what has closed, and have a
// rate. The list "memory" has each owner of registered memory, and for how long the program has had the oldest
// buffer; memory, or buffers, that grow at each look for two minutes are a trouble. The thresholds are those of
// the alerts of package prometheus; [Late] is one of them.
//
// The list "latencies" draws times: of requests by dispatcher, of calls of package rpc by method,
// and of all reports that have a field of type [godat/evd.HistogramSnapshot]. The adapter
// measures them while the program says so, or for a while when a visitor does: see
// [Handler.LetMeasure].
//
// Adapters tell no ages of operations: an operation, an event or a callback is as old as the first snapshot
// that had it. So a first look, or one long after the one before, says that it is one, and never
// that all is well. What was refused or dropped stays for a minute. What users feel of calls comes
// first: those that are late, wait, fail, were refused or lost their connection.
package inspect
