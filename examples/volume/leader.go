package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"godat/examples/volume/node"
	dat "godat/runtime"
	"godat/runtime/rpc"
)

// operator asks the nodes of a volume. It finds the leader by any of them.
type operator struct {
	ia     *dat.IA
	nodes  []string // their addresses, as far as they are known
	volume string   // the one that is meant; without a token that of the first answer
	heard  bool     // a node has answered
	// secured says that the operator has certificates.
	secured bool
	hungUp  bool // somebody has ended a connection at once, as a node does that wants certificates
	out     io.Writer
	log     io.Writer // what the operator waits for; not what a command prints
	said    time.Time // when it said so last, or when it began to wait
	wait    string    // what it said then
}

func newOperator(ia *dat.IA, addr string, out io.Writer) *operator {
	return &operator{ia: ia, nodes: []string{addr}, out: out, log: io.Discard}
}

// ask asks a node at an address.
func (o *operator) ask(ctx context.Context, at string, c node.Command) (node.Status, error) {
	s, err := node.Ask(ctx, o.ia, at, c)
	var refused *rpc.Error
	if errors.As(err, &refused) {
		err = advise(err, "%s", strings.TrimPrefix(refused.Text, "node: "))
	} else {
		o.hungUp = o.hungUp || hungUp(err)
		err = notReached(at, o.secured, err)
	}
	o.heard = o.heard || err == nil || refused != nil
	return s, err
}

var askStatus = node.Command{Do: "status"}

// glance asks a node for its status, while others are to be asked, too.
func (o *operator) glance(ctx context.Context, at string) (node.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, glanceTime)
	defer cancel()
	return o.ask(ctx, at, askStatus)
}

var (
	errNobody  = errors.New("nobody leads")
	errOther   = errors.New("another volume")
	errRemoved = errors.New("the node was removed from its volume")
)

const (
	between    = 500 * time.Millisecond // commands
	mostWait   = 30 * time.Second       // in which nothing succeeds, after which an operator gives up
	glanceTime = 3 * time.Second
	sayBrief   = 1500 * time.Millisecond // what lasts no longer is an election
	sayAgain   = 10 * time.Second
)

// say says what the operator waits for, if that lasts: nil ends the wait.
func (o *operator) say(err error) {
	now := time.Now()
	switch {
	case err == nil:
		o.said, o.wait = time.Time{}, ""
	case o.said.IsZero():
		o.said = now.Add(sayBrief - sayAgain)
	case now.Sub(o.said) >= sayAgain:
		o.said = now
		text := err.Error()
		if text == o.wait {
			text = "for the same"
		} else {
			o.wait = text
		}
		fmt.Fprintln(o.log, "volume: waiting:", text)
	}
}

// patiently does something again and again until it succeeds, or no more is to be hoped for.
func (o *operator) patiently(ctx context.Context, do func() error) error {
	defer o.say(nil)
	limit := newLimit(mostWait)
	defer limit.stop()
	for {
		err := do()
		if err == nil || errors.Is(err, errOther) || errors.Is(err, errRemoved) || errors.Is(err, errNoNode) || limit.over() {
			return err
		}
		o.say(err)
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(between):
		}
	}
}

// await finds the leader, and waits for one while an election may be under way.
func (o *operator) await(ctx context.Context) (at string, s node.Status, err error) {
	err = o.patiently(ctx, func() (err error) {
		at, s, err = o.leader(ctx)
		return err
	})
	return at, s, err
}

// leader finds the leader: at the nodes that are known, and at those that these know.
func (o *operator) leader(ctx context.Context) (addr string, s node.Status, err error) {
	var not notFound
	removed := false
	next := slices.Clone(o.nodes)
	for i := 0; i < len(next); i++ {
		at := next[i]
		s, err := o.glance(ctx, at)
		switch {
		case errors.Is(err, errNoNode) && !o.heard: // so it is the address that was given
			return "", s, err
		case err != nil:
			not.reached(at, err)
			continue
		case o.volume != "" && s.Volume != o.volume:
			return "", s, fmt.Errorf("%w: %s is of volume %s, not %s", errOther, at, s.Volume, o.volume)
		case s.Serves():
			o.found(at, &s)
			return at, s, nil
		case slices.Contains(s.Gone, s.ID):
			removed = true
		}
		not.leads(at, &s)
		next = appendMembers(next, &s)
	}
	nobody := not.err()
	if removed && len(not.why) == 1 {
		return "", s, fmt.Errorf("%w: %w", errRemoved, nobody)
	}
	return "", s, nobody
}

// notFound is why no leader is found.
type notFound struct {
	why  []string
	late map[string]bool // addresses at which somebody listens who does not answer here
	says string          // which node another one follows that does not answer here
	at   string          // its address
}

// reached notes why a node does not answer.
func (x *notFound) reached(at string, err error) {
	if errors.Is(err, errSilent) {
		err = fmt.Errorf("%s: %w", at, errSilent)
	} else {
		if x.late == nil {
			x.late = make(map[string]bool)
		}
		x.late[at] = true
	}
	x.why = append(x.why, err.Error())
}

// leads notes that a node answers, and does not lead.
func (x *notFound) leads(at string, s *node.Status) {
	x.why = append(x.why, notLeading(at, s))
	if addr := s.Members[s.Leader].Addr; s.Leader != s.ID && addr != "" && (x.at == "" || x.late[addr]) {
		x.says, x.at = fmt.Sprintf("node %d follows node %d, which does not answer here", s.ID, s.Leader), addr
	}
}

// err says that nobody leads, or that the one that others follow does not answer here.
func (x *notFound) err() error {
	all := strings.Join(x.why, "; ")
	if x.late[x.at] {
		return advise(errNobody, "%s: %s", x.says, all)
	}
	return fmt.Errorf("%w: %s", errNobody, all)
}

// appendMembers appends the addresses of members that a node knows, that of its leader first.
func appendMembers(to []string, s *node.Status) []string {
	add := func(addr string) {
		if addr != "" && !slices.Contains(to, addr) {
			to = append(to, addr)
		}
	}
	add(s.Members[s.Leader].Addr)
	for _, id := range ids(s) {
		add(s.Members[id].Addr)
	}
	return to
}

// found notes the volume's nodes, as the leader knows them.
func (o *operator) found(at string, s *node.Status) {
	o.volume = s.Volume
	o.nodes = appendMembers([]string{at}, s)
}

// notLeading says why a node that answers is not the leader.
func notLeading(at string, s *node.Status) string {
	switch {
	case s.Waits != "":
		return fmt.Sprintf("node %d at %s: %s", s.ID, at, s.Waits)
	case s.Leader == s.ID:
		return fmt.Sprintf("node %d at %s was elected, and waits for a majority", s.ID, at)
	case s.Leader != 0:
		return fmt.Sprintf("node %d at %s follows node %d", s.ID, at, s.Leader)
	}
	return fmt.Sprintf("node %d at %s hears no leader", s.ID, at)
}
