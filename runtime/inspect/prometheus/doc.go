// Package prometheus gives Prometheus the numbers of adapters:
//
//	registry.MustRegister(prometheus.New(ia))
//
// A scrape takes one snapshot of each adapter, and nothing is done between scrapes. There is no
// series for a single connection, endpoint or dispatcher, of which peers make any number: their
// gauges are summed, ages are those of the oldest, and counters are summed over all that were ever
// there. What a connection moved between the last scrape and its close is missing. Labels are the
// adapter, the words of states, operations and ends, and the addresses that the program listens on
// and calls. The page of godat/runtime/inspect names the single ones.
//
// Adapters tell ages since a snapshot first saw what stands still. So the ages here are no finer than
// the time between two scrapes.
//
// docs/alerts.yaml has rules for what is worth waking somebody for, and docs/dashboard.json is a
// dashboard for Grafana. There is nothing for OpenTelemetry, whose collector reads this format.
package prometheus
