package main

import (
	"sync"
	"time"

	"godat/examples/volume/node"
)

// shortly is how long a page waits for a node's answer.
const shortly = 300 * time.Millisecond

// view is what a page shows of a node: its last answer, since a node that waits for its disk may not answer for
// long, and the page is there to say so.
type view struct {
	node *node.Node

	mu    sync.Mutex
	last  node.Status
	asked time.Time     // when the question was put that has no answer yet
	done  chan struct{} // closed when it has one; nil if nothing is asked
}

// status is the node's answer, or the last one, and for how long the node has owed another.
func (v *view) status() (s node.Status, silent time.Duration) {
	v.mu.Lock()
	if v.done == nil {
		v.asked, v.done = time.Now(), make(chan struct{})
		go v.ask(v.done)
	}
	done := v.done
	v.mu.Unlock()
	t := time.NewTimer(shortly)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.done != nil {
		silent = time.Since(v.asked)
	}
	return v.last, silent
}

// ask takes an answer. It ends when the node answers, at the latest when it ends.
func (v *view) ask(done chan struct{}) {
	s := v.node.Status()
	v.mu.Lock()
	v.last, v.done = s, nil
	v.mu.Unlock()
	close(done)
}
