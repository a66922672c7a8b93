// Package prometheus gives Prometheus the numbers of adapters:
//
//	registry.MustRegister(prometheus.New(ia))
//
// A scrape takes one snapshot of each adapter, and nothing is done between scrapes. There is no
// series for a single connection, endpoint or dispatcher, of which peers make any number: their
// gauges are summed, ages are those of the oldest, and counters are summed over all that were ever
// there, to their close. Labels are the adapter, the words of states, operations and ends, the addresses that
// the program listens on and calls, and the methods of rpc that the program itself knows: what a peer says
// makes no series. Of an address there are at most 65 methods, of an adapter 65 closed listeners and 257
// addresses of clients and as many of servers. The page of godat/runtime/inspect names the single ones.
//
// godat_request_duration_seconds and godat_rpc_call_duration_seconds are histograms of the times that were
// measured; there are none unless the program, or a visitor of the page, has them measured
// ([godat/runtime.WithLatency]). godat_build_info and godat_process_* are of the process.
//
// Adapters tell ages since a snapshot first saw what stands still. So the ages here are no finer than
// the time between two scrapes.
//
// docs/alerts.yaml has rules for what is worth waking somebody for, with the thresholds of the page, and docs/dashboard.json is a
// dashboard for Grafana. There is nothing for OpenTelemetry, whose collector reads this format.
package prometheus
