package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"godat/examples/volume/node"
	"godat/examples/volume/state"
)

var (
	// errDiffer is the error of a volume whose disks differ.
	errDiffer = errors.New("the disks differ")
	// errNotAll is the error of a check that could not compare all disks.
	errNotAll = errors.New("not all disks were compared")
	// errAhead is the error of a node that is ahead of the leader.
	errAhead   = errors.New("it follows nobody, since it has applied what the leader never had; its status says what to do")
	errRebuilt = errors.New("it has been rebuilt, or another check was begun, since the check began: check again")
)

// mostRanges is how many ranges a check lists of each node.
const mostRanges = 16

// check compares the disks of all nodes that answer, and says where they differ, and what to do.
func (o *operator) check(ctx context.Context) error {
	at, s, err := o.await(ctx)
	if err != nil {
		return err
	}
	leader, err := o.ask(ctx, at, node.Command{Do: "check", Volume: s.Volume})
	if err != nil {
		return err
	}
	want, err := o.checked(ctx, at, max(leader.Checking, leader.Checked.Index))
	if err != nil {
		return err
	}
	var all sameDisks
	var not, ahead []uint64
	for _, id := range ids(&leader) {
		got, err := want, error(nil)
		if id != leader.ID {
			got, err = o.checked(ctx, leader.Members[id].Addr, want.Index)
		}
		if err == nil && got.Index != want.Index {
			err = errRebuilt
		}
		if err != nil {
			fmt.Fprintf(o.out, "node %d: NOT COMPARED: %v\n", id, err)
			if not = append(not, id); errors.Is(err, errAhead) {
				ahead = append(ahead, id)
			}
			continue
		}
		fmt.Fprintf(o.out, "node %d: CRC-32C %08x after record %d\n", id, got.CRC, got.Index)
		all.add(id, got.CRC)
	}
	if len(all) > 1 {
		return errors.Join(o.differ(ctx, &leader, want, all, not != nil), notAll(not, ahead))
	}
	if len(all[0].nodes) > 1 {
		fmt.Fprintf(o.out, "the disks of %s are the same after record %d\n", all[0], want.Index)
	} else if len(not) == 0 {
		fmt.Fprintf(o.out, "the disk of %s, which is the only one, can be read\n", all[0])
	}
	return notAll(not, ahead)
}

// notAll is the error of a check that has not compared the disks of some nodes, of which some are ahead of the leader.
func notAll(not, ahead []uint64) error {
	switch {
	case not == nil:
		return nil
	case ahead != nil:
		return fmt.Errorf("%w: %s did not take part; there will be no more copies until somebody decides what becomes of %s, which the status of that node says", errNotAll, nodesText(not), nodesText(ahead))
	}
	return fmt.Errorf("%w: %s did not take part; status says what becomes of that: check again when there are all copies", errNotAll, nodesText(not))
}

// sameDisks are groups of nodes whose disks are the same.
type sameDisks []sameDisk

type sameDisk struct {
	crc   uint32
	nodes []uint64
}

// String is the nodes.
func (s sameDisk) String() string { return nodesText(s.nodes) }

// nodesText is one node or several, as text.
func nodesText(all []uint64) string {
	text := make([]string, len(all))
	for i, id := range all {
		text[i] = fmt.Sprint(id)
	}
	if len(text) == 1 {
		return "node " + text[0]
	}
	return "nodes " + strings.Join(text, ", ")
}

// add adds a node.
func (s *sameDisks) add(id uint64, crc uint32) {
	for i := range *s {
		if g := &(*s)[i]; g.crc == crc {
			g.nodes = append(g.nodes, id)
			return
		}
	}
	*s = append(*s, sameDisk{crc, []uint64{id}})
}

// differ says where disks differ from that of most nodes, and what to do.
// some is set if not all disks were compared.
func (o *operator) differ(ctx context.Context, leader *node.Status, want state.Checked, all sameDisks, some bool) error {
	slices.SortStableFunc(all, func(a, b sameDisk) int { return len(b.nodes) - len(a.nodes) })
	most := all[0]
	for _, other := range all[1:] {
		ranges, err := o.ranges(ctx, leader, want.Index, most.nodes[0], other.nodes[0])
		if err != nil {
			ranges = fmt.Sprintf("the ranges are not known: %v", err)
		}
		fmt.Fprintf(o.out, "%s and %s differ: %s\n", most, other, ranges)
	}
	voters := 0
	for _, m := range leader.Members {
		if !m.Learner {
			voters++
		}
	}
	switch {
	case len(most.nodes) > voters/2:
	case some:
		return errDiffer // the others may be the majority
	default:
		return fmt.Errorf("%w, and no majority has one content: compare those ranges with a backup, or with what a host knows of them, and recover the right node", errDiffer)
	}
	wrong := make([]string, 0, len(all)-1)
	for _, other := range all[1:] {
		wrong = append(wrong, other.String())
	}
	return fmt.Errorf("%w: a majority agrees, so replace %s, one after the other, each by a node of another id, and look at the old disk for a fault", errDiffer, strings.Join(wrong, " and "))
}

// ranges lists where the disks of two nodes differ.
func (o *operator) ranges(ctx context.Context, leader *node.Status, index, a, b uint64) (string, error) {
	var text []string
	begin, more, chunks := -1, 0, 0
	end := func(chunk int) {
		if begin >= 0 && len(text) < mostRanges {
			text = append(text, fmt.Sprintf("bytes %d to %d", begin*state.ChunkLen, chunk*state.ChunkLen))
		} else if begin >= 0 {
			more++
		}
		begin = -1
	}
	for from := 0; ; from += node.MostSums {
		x, err := o.sums(ctx, leader, index, a, from)
		if err != nil {
			return "", err
		}
		y, err := o.sums(ctx, leader, index, b, from)
		if err != nil {
			return "", err
		}
		for i := 0; i+4 <= min(len(x), len(y)); i += 4 {
			chunk := from + i/4
			if bytes.Equal(x[i:i+4], y[i:i+4]) {
				end(chunk)
				continue
			}
			if chunks++; begin < 0 {
				begin = chunk
			}
		}
		if len(x) < 4*node.MostSums || len(y) < 4*node.MostSums {
			end(from + min(len(x), len(y))/4)
			break
		}
	}
	plural := "s"
	if chunks == 1 {
		plural = ""
	}
	line := fmt.Sprintf("%d chunk%s of %d KiB: %s", chunks, plural, state.ChunkLen>>10, strings.Join(text, ", "))
	if more != 0 {
		line += fmt.Sprintf(", and %d more ranges", more)
	}
	return line, nil
}

// sums are CRCs of a node's chunks, of the check at an entry.
func (o *operator) sums(ctx context.Context, leader *node.Status, index, id uint64, from int) ([]byte, error) {
	s, err := o.ask(ctx, leader.Members[id].Addr, node.Command{Do: "sums", Volume: leader.Volume, From: from})
	if err == nil && s.Checked.Index != index {
		err = errRebuilt
	}
	return s.Sums, err
}

// checked waits until a node has checked its disk at an entry, and a minute for the node to come to that.
func (o *operator) checked(ctx context.Context, addr string, index uint64) (state.Checked, error) {
	limit := newLimit(time.Minute)
	defer limit.stop()
	for {
		s, err := o.ask(ctx, addr, askStatus)
		switch {
		case err != nil && limit.pausedSince(): // its connection may have ended meanwhile
		case err != nil || s.Checked.Index >= index:
			return s.Checked, err
		case s.Ahead != "":
			return s.Checked, errAhead
		case s.Checking >= index:
			limit.again() // it reads its disk
		case s.Applied >= index:
			return s.Checked, errRebuilt
		case limit.over():
			return s.Checked, fmt.Errorf("it has record %d of %d, and did not come to that within a minute", s.Applied, index)
		}
		select {
		case <-ctx.Done():
			return s.Checked, context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
