// Package labels tells the library's goroutines apart in profiles and traces: each has the label
// godat, which says what it does, in place of those of the goroutine that happened to start it.
package labels

import (
	"context"
	"runtime/pprof"
)

// Label is a label of goroutines. A goroutine that has one costs no more than one without.
type Label struct{ ctx context.Context }

// Of is the label of goroutines that do that, and has more names and values.
func Of(work string, more ...string) Label {
	return Label{pprof.WithLabels(context.Background(), pprof.Labels(append([]string{"godat", work}, more...)...))}
}

// Set gives the goroutine the label, in place of those that it has.
func (l Label) Set() { pprof.SetGoroutineLabels(l.ctx) }

// Clear takes all labels from the goroutine, which is a pool's.
func Clear() { pprof.SetGoroutineLabels(context.Background()) }
