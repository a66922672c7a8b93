package inspect

import "time"

// The thresholds of the page's troubles. The rules docs/alerts.yaml of package prometheus have the same.
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
