package node

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"slices"

	"godat/examples/volume/raftlog"
	"godat/runtime/rpc"
)

// hello is what nodes say of themselves when they connect, as JSON behind a note. What a node does not know it ignores.
type hello struct {
	Terms
	Speaks int `json:",omitempty"` // the highest version of what nodes say to each other
	raftlog.Known
	Forwards bool            `json:",omitempty"` // it takes what hosts ask of followers
	Members  raftlog.Members `json:",omitempty"` // of the volume, as the node knows them: where the others are
	Page     string          `json:",omitempty"` // the node's
}

func (s *site) hello() ([]byte, error) {
	return json.Marshal(hello{s.terms, wireVersion, raftlog.Known{Birth: s.cfg.Birth, Hosts: s.cfg.Hosts.Addr}, true, s.log.Members(), s.cfg.Page})
}

// greet says hello. Both ends compare what they say. here says that this node refuses the other one.
func (s *site) greet(ctx context.Context, client *rpc.Client, id uint64) (here bool, err error) {
	b, err := s.hello()
	if err != nil {
		return false, err
	}
	answer, err := client.Call(ctx, rpc.Call{Method: methodHello, Payload: append(s.note(id), b...)}, nil)
	if err != nil {
		return false, err
	}
	_, err = s.compare(answer)
	return true, err
}

// compare compares a node's hello with this one's, and keeps what a member says of itself.
func (s *site) compare(b []byte) (x note, err error) {
	x, rest, err := parseNote(b)
	if err == nil {
		err = s.check(&x, true)
	}
	if err != nil {
		return x, err
	}
	var there hello
	if json.Unmarshal(rest, &there) != nil {
		return x, errNote
	}
	if what := s.terms.Differences(&there.Terms); what != "" {
		return x, stranger("the options of node %d and node %d differ: %s", s.cfg.ID, x.from, what)
	}
	if err := s.know(x.from, there.Known); err != nil {
		return x, err
	}
	s.learnWays(there.Members)
	s.health.hasPage(x.from, there.Page)
	s.ways.learnForwards(x.from, there.Forwards)
	return x, nil
}

// know refuses a node whose files are not those that it had, and keeps what is news of a member.
func (s *site) know(id uint64, now raftlog.Known) error {
	s.knowing.Lock()
	defer s.knowing.Unlock()
	all := s.log.Known()
	was := all[id]
	if was.Birth != 0 && now.Birth != 0 && was.Birth != now.Birth {
		return stranger("the files of node %d were made again: a node that lost its disk has forgotten what it acknowledged, and is another node: "+
			"replace %[1]d by a node of another id", id)
	}
	if now.Birth == 0 {
		now.Birth = was.Birth
	}
	now.For = was.For
	if _, _, err := net.SplitHostPort(now.Hosts); err != nil {
		now.Hosts = ""
	}
	if _, member := s.log.Member(id); !member || now == was {
		return nil
	}
	if all == nil {
		all = make(map[uint64]raftlog.Known)
	}
	all[id] = now
	if err := s.log.SetKnown(all); err != nil {
		s.fail(err)
		return err
	}
	s.tellElsewhere()
	return nil
}

// comesFor keeps that a node was added in another's place. When the operator's command is interrupted, that says what it
// was about to do.
func (s *site) comesFor(id, old uint64) {
	s.knowing.Lock()
	defer s.knowing.Unlock()
	all := s.log.Known()
	if all == nil {
		all = make(map[uint64]raftlog.Known)
	}
	x := all[id]
	x.For = old
	all[id] = x
	if err := s.log.SetKnown(all); err != nil {
		s.fail(err)
	}
}

// instead are the members that were added in another's place, which is a member still.
func (s *site) instead(members raftlog.Members) map[uint64]uint64 {
	all := make(map[uint64]uint64)
	for id, x := range s.log.Known() {
		_, is := members[id]
		if _, was := members[x.For]; is && was {
			all[id] = x.For
		}
	}
	return all
}

// learn keeps what a leader knows of other nodes: where hosts reach them now, and the births that this node does not know.
func (s *site) learn(told map[uint64]raftlog.Known) error {
	s.knowing.Lock()
	defer s.knowing.Unlock()
	was := s.log.Known()
	all := make(map[uint64]raftlog.Known)
	maps.Copy(all, was)
	for id, x := range told {
		if id == s.cfg.ID {
			continue
		}
		if birth := all[id].Birth; birth != 0 {
			x.Birth = birth
		}
		if x.For == 0 { // the leader is of the version before
			x.For = all[id].For
		}
		all[id] = x
	}
	if maps.Equal(all, was) {
		return nil
	}
	if err := s.log.SetKnown(all); err != nil {
		s.fail(err)
		return err
	}
	s.tellElsewhere()
	return nil
}

// Hosts is how a node and its program speak of hosts. The function may be nil; it must not call the node, or wait.
type Hosts struct {
	Addr string // HOST:PORT at which hosts reach this node, or empty
	// Elsewhere hears at which addresses hosts reach the other members, when that is news.
	Elsewhere func(addrs []string)
}

// tellElsewhere tells at which addresses hosts reach the other members.
func (s *site) tellElsewhere() {
	if s.cfg.Hosts.Elsewhere == nil {
		return
	}
	known, members := s.log.Known(), s.log.Members()
	var addrs []string
	for _, id := range slices.Sorted(maps.Keys(members)) {
		if id != s.cfg.ID && known[id].Hosts != "" {
			addrs = append(addrs, known[id].Hosts)
		}
	}
	s.cfg.Hosts.Elsewhere(addrs)
}
