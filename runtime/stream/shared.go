package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"godat/hw"
	dat "godat/runtime"
)

// defaultAdapter is shared where the program names none: every program has its provider.
const defaultAdapter = "iwarp"

// shared is the adapter that dialers and listeners without one share, by the name that they open it
// by. It is open while it has users: listeners, connections, and dials under way.
type shared struct {
	name string        // immutable
	turn chan struct{} // immutable, of length 1: full while somebody opens, or changes what follows

	ia    *dat.IA // nil without users
	users int
}

// allShared has a shared adapter for each name that was ever used.
var allShared sync.Map // of string to *shared

func sharedBy(name string) *shared {
	name = cmp.Or(name, defaultAdapter)
	s, _ := allShared.LoadOrStore(name, &shared{name: name, turn: make(chan struct{}, 1)})
	return s.(*shared)
}

// use is one user's adapter: the program's own, or a share of one.
type use struct {
	ia     *dat.IA
	shared *shared // nil: ia is the program's
}

// useOf is the adapter of a dialer or listener that may have one. Its user calls leave at the end.
func useOf(ctx context.Context, ia *dat.IA, cfg *Config) (use, error) {
	switch {
	case ia == nil:
		return sharedBy(cfg.Adapter).join(ctx)
	case cfg.Adapter != "" || cfg.TCP:
		return use{}, fmt.Errorf("stream: Config.Adapter and Config.TCP are for a call without an adapter, and this one has %v: %w", ia, hw.ErrInvalidParameter)
	}
	return use{ia: ia}, nil
}

// join opens the adapter for its first user, and counts one more.
func (s *shared) join(ctx context.Context) (use, error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return use{}, context.Cause(ctx)
	}
	defer s.endTurn()
	if s.ia == nil {
		ia, err := dat.Open(ctx, s.name)
		if err != nil {
			return use{}, err
		}
		s.ia = ia
	}
	s.users++
	return use{s.ia, s}, nil
}

func (s *shared) endTurn() { <-s.turn }

// again is the same adapter for one more user, who joins while another has not left. It fails if
// all have left meanwhile.
func (u use) again() (use, error) {
	s := u.shared
	if s == nil {
		return u, nil
	}
	s.turn <- struct{}{}
	defer s.endTurn()
	if s.ia != u.ia {
		return use{}, net.ErrClosed
	}
	s.users++
	return u, nil
}

// leave counts a user out, and closes a shared adapter behind the last one.
func (u use) leave() error {
	s := u.shared
	if s == nil {
		return nil
	}
	s.turn <- struct{}{} // not for long: nobody opens an adapter that has users
	s.users--
	last := s.users == 0
	if last {
		s.ia = nil
	}
	s.endTurn()
	if last {
		return u.ia.Close()
	}
	return nil
}

// wantsTCP decides what the error of useOf means: nil that the system's TCP takes the adapter's place.
func (cfg *Config) wantsTCP(err error) error {
	switch {
	case !errors.Is(err, hw.ErrProviderNotFound):
		return err
	case cfg.TCP:
		return nil
	}
	return fmt.Errorf("%w (Config.TCP would use the system's TCP then)", err)
}
