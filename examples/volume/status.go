package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"godat/examples/volume/node"
	"godat/runtime/inspect"
)

// ids are the members' numbers.
func ids(s *node.Status) []uint64 { return slices.Sorted(maps.Keys(s.Members)) }

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
	// The members' lines and the copies are of one answer: that of the leader, if one is found.
	at, errLeader := s, error(nil)
	if !s.Serves() {
		o.nodes = appendMembers(o.nodes, &s)
		_, at, errLeader = o.leader(ctx)
	}
	fmt.Fprintf(out, "node %d %s, term %d; records %d, applied %d, released %d\n",
		s.ID, roleText(&s), s.Term, s.Last, s.Applied, s.Released)
	fmt.Fprintf(out, "volume %s\n", s.Volume)
	for _, r := range s.Refusals {
		fmt.Fprintf(out, "REFUSED %s; %v ago\n", refusalText(&r, &s), time.Since(r.Last).Round(time.Second))
	}
	if s.Waits != "" {
		fmt.Fprintln(out, "WAITS", s.Waits)
	}
	if errLeader == nil && at.ID != s.ID && at.Waits != "" {
		fmt.Fprintf(out, "WAITS node %d, which leads: %s\n", at.ID, at.Waits)
	}
	if s.Rotten && s.Rebuilds != 0 {
		fmt.Fprintf(out, "it is being rebuilt: %d of %d bytes\n", s.Rebuilt, s.Rebuilds)
	}
	if s.Zeros != 0 {
		fmt.Fprintf(out, "zeros that are still to be written to the disk: %d bytes\n", s.Zeros)
	}
	seen := &at
	if errLeader != nil {
		seen = &s
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, id := range ids(seen) {
		fmt.Fprintf(w, "%d\t%s", id, seen.Members[id].Addr)
		if text := memberText(id, seen); text != nil {
			fmt.Fprintf(w, "\t%s", strings.Join(text, ", "))
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	line, err := copiesText(&s, &at, errLeader)
	fmt.Fprintln(out, line)
	return err
}

// roleText says what a node does.
func roleText(s *node.Status) string {
	switch {
	case s.Serves():
		return "leads"
	case s.Leader == s.ID:
		return "was elected, and does not serve yet"
	case s.Leader != 0:
		return fmt.Sprintf("follows node %d", s.Leader)
	case s.Role == node.Follower:
		return "follows nobody"
	}
	return "stands for election"
}

// memberText says what a leader knows of a member.
func memberText(id uint64, s *node.Status) (all []string) {
	p, known := s.Seen()[id]
	if why := s.Others[id].Why; !known && why != "" {
		all = append(all, why)
	}
	if p.Silent { // so what it has is not known
		text := "silent"
		if p.Why != "" {
			text += ": " + p.Why
		}
		all = append(all, text)
		if s.Members[id].Learner {
			all = append(all, "does not vote yet")
		}
		return all
	}
	if known {
		all = append(all, fmt.Sprintf("has %d", p.Match))
	}
	switch {
	case known && id == s.Leader:
		all = append(all, "leads")
	case known:
		all = append(all, p.Text())
	}
	if s.Members[id].Learner {
		all = append(all, "does not vote yet")
	}
	if p.Out {
		all = append(all, "out")
	}
	if p.Behind != 0 {
		all = append(all, records(p.Behind)+" behind")
	}
	if x := p.Self; x != nil && x.Disk.Newest != 0 {
		all = append(all, fmt.Sprintf("its newest write to the disk took %s", lasting(x.Disk.Newest)))
		if x.Disk.Longest >= inspect.Late {
			all = append(all, wrote(x.Disk.Longest, x.Disk.Ago))
		}
	}
	return all
}

// errFewer is the error of a volume that has fewer copies than asked. A line has said more.
var errFewer = errors.New("fewer copies than members that vote")

// copiesText says how many copies there are, as the leader at of a node's volume knows, unless it was not found.
func copiesText(s, at *node.Status, err error) (string, error) {
	switch {
	case slices.Contains(s.Gone, s.ID), err == nil && slices.Contains(at.Gone, s.ID):
		line := fmt.Sprintf("copies: none here: node %d was removed from the volume: end it", s.ID)
		if err == nil {
			line += fmt.Sprintf("; the members are %s, and node %d leads", node.NodeList(at.Members), at.ID)
		}
		return line, errFewer
	case err != nil && len(s.Members) == 0:
		return fmt.Sprintf("copies: none here: node %d is no member yet", s.ID), errFewer
	case errors.Is(err, errNobody) && s.Waits != "" && s.Leader == 0: // which has said why
		return "copies: unknown, since nobody leads", errFewer
	case err != nil:
		return fmt.Sprintf("copies: unknown: %v", err), errFewer
	}
	have, asked, missing := copies(at)
	line := fmt.Sprintf("copies: %d of %d", have, asked)
	if _, member := at.Members[s.ID]; !member {
		return line + fmt.Sprintf("; node %d is no member", s.ID), errFewer
	}
	if have == asked {
		return line, nil
	}
	return line + "; " + strings.Join(missing, ", "), errFewer
}

// copies counts the members that vote, and those of them that have what is written now. s is of a leader.
func copies(s *node.Status) (have, asked int, missing []string) {
	for _, id := range ids(s) {
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
		case !p.Follows():
			missing = append(missing, fmt.Sprintf("node %d %s", id, p.Text()))
		default:
			have++
		}
	}
	return have, asked, missing
}

// refusalText is a refusal in words.
func refusalText(r *node.Refusal, s *node.Status) string {
	who := "somebody at " + r.Addr
	if _, member := s.Members[r.Node]; member {
		who = s.Name(r.Node) // r has the host alone, since a caller's port says nothing
	} else if r.Node != 0 {
		who = fmt.Sprintf("node %d at %s", r.Node, r.Addr)
	}
	why := strings.TrimPrefix(r.Why, "node: ")
	if r.Here {
		return fmt.Sprintf("this node refuses %s: %s", who, why)
	}
	return fmt.Sprintf("%s refuses this node: %s", who, why)
}
