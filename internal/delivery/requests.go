package delivery

import "sync"

// requestSet has the connection requests that a dispatcher delivered or is to
// deliver, and that are not answered yet.
type requestSet struct {
	mu    sync.Mutex
	nodes map[*AsyncNode]struct{}
}

func (s *requestSet) add(node *AsyncNode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes == nil {
		s.nodes = make(map[*AsyncNode]struct{})
	}
	s.nodes[node] = struct{}{}
}

func (s *requestSet) remove(node *AsyncNode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, node)
}

// drop calls Drop of each request that is not answered. The dispatcher can't tell
// which of their events are still in a channel, so each request knows whether the
// program took it. The dispatcher is closed.
func (s *requestSet) drop() {
	s.mu.Lock()
	nodes := s.nodes
	s.nodes = nil
	s.mu.Unlock()
	for node := range nodes {
		if node.Drop != nil {
			node.Drop()
		}
	}
}
