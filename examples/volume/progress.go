package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"godat/examples/volume/node"
)

// progress shows how far a node is that is rebuilt: a bar on a terminal, and else a line of JSON for
// each change.
type progress struct {
	out  io.Writer
	bar  *progressbar.ProgressBar // or nil
	last rebuilding
}

// rebuilding is how far a node is.
type rebuilding struct {
	Node  uint64 `json:"node"`
	State string `json:"state"` // silent, waiting, rebuilding, or whole: it gets the newest entries
	Done  uint64 `json:"done"`  // bytes
	Of    uint64 `json:"of"`
}

func newProgress(out io.Writer, id uint64) *progress {
	p := &progress{out: out, last: rebuilding{Node: id}}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions64(-1, progressbar.OptionSetWriter(out), progressbar.OptionShowBytes(true), progressbar.OptionSetWidth(30),
			progressbar.OptionSetDescription(fmt.Sprintf("node %d", id)), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	}
	return p
}

// show shows the status of the node, or that it did not tell.
func (p *progress) show(s node.Status, err error) {
	now := rebuilding{p.last.Node, "whole", s.Rebuilt, s.Rebuilds}
	switch {
	case err != nil:
		now.State = "silent"
	case s.Rotten && s.Rebuilds == 0:
		now.State = "waiting"
	case s.Rotten:
		now.State = "rebuilding"
	}
	if now == p.last {
		return
	}
	p.last = now
	if p.bar == nil {
		_ = json.NewEncoder(p.out).Encode(now) // of what is printed nothing depends
		return
	}
	p.bar.Describe(fmt.Sprintf("node %d: %s", now.Node, now.State))
	if now.Of != 0 {
		p.bar.ChangeMax64(int64(now.Of))
		_ = p.bar.Set64(int64(now.Done)) // the same
	}
}

// end removes the bar.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear() // the same
	}
}
