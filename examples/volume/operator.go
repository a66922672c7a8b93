package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"godat/examples/volume/node"
	"godat/examples/volume/state"
	dat "godat/runtime"
	"godat/runtime/rpc"
)

// operator asks the nodes of a volume. It finds the leader by any of them.
type operator struct {
	ia     *dat.IA
	nodes  []string // their addresses, as far as they are known
	volume string   // the one that is meant; without a token that of the first answer
	out    io.Writer
}

func newOperator(ia *dat.IA, addr string, out io.Writer) *operator {
	return &operator{ia: ia, nodes: []string{addr}, out: out}
}

var askStatus = node.Command{Do: "status"}

var errNobody = errors.New("nobody leads")

// leader finds the leader.
func (o *operator) leader(ctx context.Context) (addr string, s node.Status, err error) {
	var errs []error
	for _, at := range o.nodes {
		s, err := node.Ask(ctx, o.ia, at, askStatus)
		if m, ok := s.Members[s.Leader]; err == nil && ok && s.ID != s.Leader {
			at = m.Addr
			s, err = node.Ask(ctx, o.ia, at, askStatus)
		}
		if err == nil && o.volume != "" && s.Volume != o.volume {
			return "", s, fmt.Errorf("%s is of volume %s, not %s", at, s.Volume, o.volume)
		}
		if err == nil && s.Serves() {
			o.volume = s.Volume
			o.nodes = []string{at}
			for _, m := range s.Members {
				if m.Addr != at {
					o.nodes = append(o.nodes, m.Addr)
				}
			}
			return at, s, nil
		}
		errs = append(errs, err)
	}
	return "", s, errors.Join(append(errs, errNobody)...)
}

const (
	between  = 500 * time.Millisecond // commands
	failures = 60                     // in a row, after which an operator gives up
)

// until gives the leader the command that step returns, again and again, until step says that the volume
// is as it should be. The leader may be another one each time.
func (o *operator) until(ctx context.Context, step func(leader node.Status) (c node.Command, done bool)) error {
	for failed := 0; ; {
		at, s, err := o.leader(ctx)
		if err == nil {
			c, done := step(s)
			if done {
				return nil
			}
			c.Volume = s.Volume
			_, err = node.Ask(ctx, o.ia, at, c)
		}
		var refused *rpc.Error
		switch {
		case err == nil || errors.Is(err, node.ErrNotNow):
			failed = 0
		case errors.As(err, &refused):
			return err
		default:
			if failed++; failed == failures {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(between):
		}
	}
}

// add adds a node as a learner, and lets it vote when it has the disk.
func (o *operator) add(ctx context.Context, id uint64, addr string) error {
	p := newProgress(o.out, id)
	defer p.end()
	return o.until(ctx, func(leader node.Status) (c node.Command, done bool) {
		switch m, member := leader.Members[id]; {
		case !member || m.Addr != addr:
			return node.Command{Do: "add", ID: id, Addr: addr}, false
		case m.Learner:
			s, err := node.Ask(ctx, o.ia, addr, askStatus)
			p.show(s, err)
			return node.Command{Do: "promote", ID: id}, false
		}
		return c, true
	})
}

func (o *operator) remove(ctx context.Context, id uint64) error {
	return o.until(ctx, func(leader node.Status) (node.Command, bool) {
		_, member := leader.Members[id]
		return node.Command{Do: "remove", ID: id}, !member
	})
}

// replace adds a node and removes another. After a failure it goes on where it was.
func (o *operator) replace(ctx context.Context, old, id uint64, addr string) error {
	_, leader, err := o.leader(ctx)
	if err != nil {
		return err
	}
	if _, member := leader.Members[old]; !member && leader.Members[id].Addr == "" {
		return fmt.Errorf("node %d is no member", old)
	}
	if err := o.add(ctx, id, addr); err != nil {
		return err
	}
	return o.remove(ctx, old)
}

func (o *operator) transfer(ctx context.Context, id uint64) error {
	return o.until(ctx, func(leader node.Status) (node.Command, bool) {
		return node.Command{Do: "transfer", ID: id}, leader.ID == id
	})
}

// status prints what a node knows.
func status(ctx context.Context, ia *dat.IA, addr string, out io.Writer) error {
	s, err := node.Ask(ctx, ia, addr, askStatus)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "node %d: %s, %s; leader %d, term %d; records %d, applied %d, released %d\n",
		s.ID, s.Role, s.State, s.Leader, s.Term, s.Last, s.Applied, s.Released)
	fmt.Fprintf(out, "volume %s\n", s.Volume)
	for _, r := range s.Refusals {
		fmt.Fprintf(out, "REFUSED %s\n", refusalText(&r))
	}
	if s.Rotten {
		fmt.Fprintf(out, "it is being rebuilt: %d of %d bytes\n", s.Rebuilt, s.Rebuilds)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, id := range slices.Sorted(maps.Keys(s.Members)) {
		m := s.Members[id]
		fmt.Fprintf(w, "%d\t%s\t", id, m.Addr)
		if m.Learner {
			fmt.Fprint(w, "learner ")
		}
		if p, ok := s.Replicas[id]; ok {
			fmt.Fprintf(w, "\thas %d\t%s", p.Match, strings.TrimPrefix(p.State, "State"))
			if p.Out {
				fmt.Fprint(w, " (out)")
			}
			if p.Silent {
				fmt.Fprint(w, " (silent)")
			}
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// refusalText is a refusal in words.
func refusalText(r *node.Refusal) string {
	if r.Here {
		return fmt.Sprintf("here, from node %d at %s: %s", r.Node, r.Addr, r.Why)
	}
	return fmt.Sprintf("by node %d at %s: %s", r.Node, r.Addr, r.Why)
}

// errDiffer is the error of a volume whose disks differ.
var errDiffer = errors.New("the disks differ")

// check compares the disks.
func (o *operator) check(ctx context.Context) error {
	at, s, err := o.leader(ctx)
	if err != nil {
		return err
	}
	leader, err := node.Ask(ctx, o.ia, at, node.Command{Do: "check", Volume: s.Volume})
	if err != nil {
		return err
	}
	want := leader.Checked
	for _, id := range slices.Sorted(maps.Keys(leader.Members)) {
		got, err := o.checked(ctx, leader.Members[id].Addr, want.Index)
		if err != nil {
			return fmt.Errorf("node %d: %w", id, err)
		}
		fmt.Fprintf(o.out, "node %d: CRC-32C %08x after record %d\n", id, got.CRC, got.Index)
		if got != want {
			return errDiffer
		}
	}
	return nil
}

var errRebuilt = errors.New("it has been rebuilt since the check began: check again")

// checked waits until a node has checked its disk at an entry.
func (o *operator) checked(ctx context.Context, addr string, index uint64) (state.Checked, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		s, err := node.Ask(ctx, o.ia, addr, askStatus)
		switch {
		case err != nil || s.Checked.Index >= index:
			return s.Checked, err
		case s.Applied >= index:
			return s.Checked, errRebuilt
		}
		select {
		case <-ctx.Done():
			return s.Checked, context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
