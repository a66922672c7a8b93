package journal

import "fmt"

// Grant gives the slots of a node to a connection of that node, which will write them by
// RDMA. First it takes them back from the connection that had them: it calls that one's
// revoke, after which no write of that connection may change them any more. Revoke must not
// call the journal.
func (j *Journal) Grant(node int, revoke func()) ([]byte, error) {
	if node < 0 || node >= j.layout.Nodes {
		return nil, fmt.Errorf("journal: no node %d of %d", node, j.layout.Nodes)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.takeBack(node)
	j.grants[node] = revoke
	n := j.layout.Slots * j.layout.SlotSize
	return j.Memory()[page+node*n:][:n:n], nil
}

// Revoke takes the slots of all nodes back. A replica that leaves the direct ones calls it
// before its slots may differ from what its log says.
func (j *Journal) Revoke() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for node := range j.grants {
		j.takeBack(node)
	}
}

// takeBack takes the slots of a node back. The caller holds the lock.
func (j *Journal) takeBack(node int) {
	if revoke := j.grants[node]; revoke != nil {
		revoke()
	}
	j.grants[node] = nil
}
