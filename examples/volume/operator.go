package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"godat/examples/volume/node"
	"godat/examples/volume/raftlog"
	"godat/runtime/rpc"
)

// until gives the leader the command that step returns, again and again, until step says that the volume
// is as it should be. The leader may be another one each time.
func (o *operator) until(ctx context.Context, step func(leader node.Status) (c node.Command, done bool)) error {
	defer o.say(nil)
	limit := newLimit(mostWait)
	defer limit.stop()
	for {
		at, s, err := o.leader(ctx)
		if err == nil {
			c, done := step(s)
			if done {
				return nil
			}
			c.Volume = s.Volume
			_, err = o.ask(ctx, at, c)
		}
		var refused *rpc.Error
		o.say(err)
		switch {
		case err == nil || errors.Is(err, node.ErrNotNow):
			limit.again()
		case errors.As(err, &refused), errors.Is(err, errOther), errors.Is(err, errRemoved):
			return err
		default:
			if limit.over() {
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
func (o *operator) add(ctx context.Context, id uint64, addr string, force bool) error {
	return o.addFor(ctx, 0, id, addr, force)
}

// addFor is add in the place of another node, unless that is 0.
func (o *operator) addFor(ctx context.Context, old, id uint64, addr string, force bool) error {
	_, leader, err := o.await(ctx)
	if err != nil {
		return err
	}
	if err := o.fits(ctx, leader, id, addr); err != nil {
		return err
	}
	// A leader says it, too, but not one of an earlier version. Nor does such a node know the command.
	_, _ = o.ask(ctx, addr, node.Command{Do: "meet", Members: leader.Members, Volume: leader.Volume})
	p := newProgress(o.out, id)
	defer p.end()
	err = o.until(ctx, func(leader node.Status) (c node.Command, done bool) {
		switch m, member := leader.Members[id]; {
		case !member || m.Addr != addr:
			return node.Command{Do: "add", ID: id, Addr: addr, For: old}, false
		case m.Learner:
			s, err := o.ask(ctx, addr, askStatus)
			p.show(s, err)
			if err == nil && s.Waits != "" {
				o.say(fmt.Errorf("node %d: %s", id, s.Waits))
			}
			return node.Command{Do: "promote", ID: id, Force: force}, false
		}
		return c, true
	})
	return o.did(ctx, err, "node %d is a member that votes", id)
}

// fits reports whether a node at an address may be added: it says that it is that node of that volume, with its options.
func (o *operator) fits(ctx context.Context, leader node.Status, id uint64, addr string) error {
	if m, member := leader.Members[id]; member && m.Addr == addr {
		return nil // it was added before
	} else if member {
		return fmt.Errorf("node %d is a member already, at %s", id, m.Addr)
	}
	if slices.Contains(leader.Gone, id) {
		return fmt.Errorf("node %d was a member: give the new node another id", id)
	}
	var s node.Status
	err := o.patiently(ctx, func() (err error) {
		s, err = o.ask(ctx, addr, askStatus)
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("node %d does not answer at %s: serve it first, with --create --join: %w", id, addr, err)
	case s.Volume != leader.Volume:
		return fmt.Errorf("%s is of volume %s, not %s", addr, s.Volume, leader.Volume)
	case s.ID != id:
		return fmt.Errorf("%s is node %d, not %d", addr, s.ID, id)
	}
	if what := leader.Terms.Differences(&s.Terms); what != "" {
		return fmt.Errorf("the options of node %d are others (here is the leader): %s", id, what)
	}
	return nil
}

// did says in a line what a command has done, unless it failed.
func (o *operator) did(ctx context.Context, err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	line := fmt.Sprintf(format, args...)
	if _, s, err := o.leader(ctx); err == nil {
		line += fmt.Sprintf("; members are %s, node %d leads", node.NodeList(s.Members), s.ID)
	}
	fmt.Fprintln(o.out, line)
	return nil
}

func (o *operator) remove(ctx context.Context, id uint64, force bool) error {
	_, leader, err := o.await(ctx)
	if err != nil {
		return err
	}
	if _, member := leader.Members[id]; !member {
		return fmt.Errorf("no node %d; members are %s", id, node.NodeList(leader.Members))
	}
	err = o.until(ctx, func(leader node.Status) (node.Command, bool) {
		_, member := leader.Members[id]
		return node.Command{Do: "remove", ID: id, Force: force}, !member
	})
	return o.did(ctx, err, "node %d is removed", id)
}

func errSameNode(id uint64) error {
	return fmt.Errorf("a node that lost its disk is another node: replace %d by a node of another id", id)
}

// onlyRemoves refuses a replace whose new node votes already, if the volume would survive fewer lost nodes without the old one.
// One that was interrupted goes on: its new node was added in the place of the old one, or, if the leader is of a version that does not
// note that, there is a node more than before, as their even number says.
func onlyRemoves(members raftlog.Members, instead map[uint64]uint64, old, id uint64) error {
	if instead[id] == old {
		return nil
	}
	voters := 0
	for _, m := range members {
		if !m.Learner {
			voters++
		}
	}
	was, member := members[old]
	is, added := members[id]
	if !member || was.Learner || !added || is.Learner || voters%2 == 0 {
		return nil
	}
	return fmt.Errorf("node %d votes already, so this would only remove node %d, and leave a copy less: give a new node of another id; --force or remove does it all the same", id, old)
}

// replace adds a node and removes another. After a failure it goes on where it was.
func (o *operator) replace(ctx context.Context, old, id uint64, addr string, force bool) error {
	if old == id {
		return errSameNode(old)
	}
	_, leader, err := o.await(ctx)
	if err != nil {
		return err
	}
	if _, member := leader.Members[old]; !member && leader.Members[id].Addr == "" {
		return fmt.Errorf("node %d is no member", old)
	}
	if err := onlyRemoves(leader.Members, leader.Instead, old, id); err != nil && !force {
		return err
	}
	if err := o.addFor(ctx, old, id, addr, force); err != nil {
		return err
	}
	if _, member := leader.Members[old]; !member {
		return o.did(ctx, nil, "node %d was removed before", old)
	}
	return o.remove(ctx, old, force)
}

// transferTime is how long a node may take to lead: two elections.
func transferTime(s node.Status) time.Duration {
	for _, x := range s.Terms.All {
		if tick, err := time.ParseDuration(x.Value); x.Name == "tick" && err == nil {
			return max(40*tick, 4*time.Second)
		}
	}
	return 4 * time.Second
}

// transfer gives the lead to a node, once: while it is on its way, the volume takes no writes.
func (o *operator) transfer(ctx context.Context, id uint64) error {
	at, s, err := o.await(ctx)
	if err != nil {
		return err
	}
	if s.ID == id {
		return o.did(ctx, nil, "node %d leads already", id)
	}
	if _, err := o.ask(ctx, at, node.Command{Do: "transfer", ID: id, Volume: s.Volume}); err != nil {
		return err
	}
	limit := newLimit(transferTime(s))
	defer limit.stop()
	for {
		_, now, err := o.leader(ctx)
		switch {
		case err == nil && now.ID == id:
			return o.did(ctx, nil, "node %d leads", id)
		case limit.over():
			return errors.Join(fmt.Errorf("node %d does not lead after %v", id, transferTime(s)), err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
