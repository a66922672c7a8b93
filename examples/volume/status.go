package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"godat/examples/volume/node"
)

// status prints what a node knows, and how many copies there are. It fails if there are fewer than asked.
func (o *operator) status(ctx context.Context) error {
	addr, out := o.nodes[0], o.out
	s, err := o.ask(ctx, addr, askStatus)
	if err != nil {
		return err
	}
	if o.volume != "" && s.Volume != o.volume {
		return fmt.Errorf("%w: %s is of volume %s, not %s", errOther, addr, s.Volume, o.volume)
	}
	fmt.Fprintf(out, "node %d: %s, %s; leader %d, term %d; records %d, applied %d, released %d\n",
		s.ID, s.Role, s.State, s.Leader, s.Term, s.Last, s.Applied, s.Released)
	fmt.Fprintf(out, "volume %s\n", s.Volume)
	for _, r := range s.Refusals {
		fmt.Fprintf(out, "REFUSED %s\n", refusalText(&r))
	}
	if s.Waits != "" {
		fmt.Fprintln(out, "WAITS", s.Waits)
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
	if err := w.Flush(); err != nil {
		return err
	}
	line, err := o.copies(ctx, &s)
	fmt.Fprintln(out, line)
	return err
}

// errFewer is the error of a volume that has fewer copies than asked.
var errFewer = errors.New("there are not as many copies as asked")

// copies says how many copies there are, as the leader of a node's volume knows.
func (o *operator) copies(ctx context.Context, s *node.Status) (string, error) {
	if m, ok := s.Members[s.Leader]; ok && !s.Serves() {
		at, err := o.ask(ctx, m.Addr, askStatus)
		if err == nil && at.Volume == s.Volume {
			s = &at
		}
	}
	if !s.Serves() {
		return "copies: unknown, since nobody leads, or the leader does not answer", errFewer
	}
	have, asked, missing := copies(s)
	if have == asked {
		return fmt.Sprintf("copies: %d of %d", have, asked), nil
	}
	return fmt.Sprintf("copies: %d of %d; %s", have, asked, strings.Join(missing, ", ")), errFewer
}

// copies counts the members that vote, and those of them that have what is written now. s is of a leader.
func copies(s *node.Status) (have, asked int, missing []string) {
	for _, id := range slices.Sorted(maps.Keys(s.Members)) {
		if s.Members[id].Learner {
			continue
		}
		asked++
		switch p, known := s.Replicas[id]; {
		case id == s.ID:
			have++
		case !known || p.Silent:
			missing = append(missing, fmt.Sprintf("node %d is silent", id))
		case p.Out:
			missing = append(missing, fmt.Sprintf("node %d is out", id))
		default:
			have++
		}
	}
	return have, asked, missing
}

// refusalText is a refusal in words.
func refusalText(r *node.Refusal) string {
	who := fmt.Sprintf("node %d", r.Node)
	if r.Node == 0 {
		who = "somebody"
	}
	if r.Here {
		return fmt.Sprintf("here, from %s at %s: %s", who, r.Addr, r.Why)
	}
	return fmt.Sprintf("by %s at %s: %s", who, r.Addr, r.Why)
}
