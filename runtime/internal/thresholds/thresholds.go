// Package thresholds has what the page of package inspect, package rpc, and the rules docs/alerts.yaml of package
// prometheus call a trouble.
package thresholds

import "time"

// Of adapters and of the process.
const (
	Late   = time.Second // an operation, event, callback or call that has waited for so long is in trouble
	Nearly = 0.9         // of a limit of the process: little is left

	// ManyBroken connections within five minutes are worth an alert. The page tells each.
	ManyBroken = 10

	// Endless is for how long memory, or the buffers that a program has, grow at each look until that is a trouble.
	Endless = 2 * time.Minute

	// ManyGoroutines and MuchMemory, in bytes, are by how much a process grows in that time until that is a
	// trouble: load that comes brings less.
	ManyGoroutines = 100
	MuchMemory     = 256 << 20
)

// Of the answers of calls within a minute. Answers with a program's own codes may be ordinary: they are a trouble if
// so many are, and that share of all: less than half, so that a program half of whose answers fail is told at each
// look.
const (
	ManyFailures  = 10
	FailuresShare = 0.4

	// FewFailures with package rpc's own codes, and FewShare of all answers, are a trouble already: no program
	// means to answer so.
	FewFailures = 3
	FewShare    = 0.01
)
