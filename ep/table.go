package ep

import (
	"maps"
	"slices"
	"sync"
)

// table lists what lives on an adapter.
type table[K comparable, V any] struct {
	mu  sync.Mutex
	all map[K]V
}

func (t *table[K, V]) put(k K, v V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = make(map[K]V)
	}
	t.all[k] = v
}

func (t *table[K, V]) remove(k K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, k)
}

func (t *table[K, V]) get(k K) V {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[k]
}

func (t *table[K, V]) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.all)
}

// list copies the list as it is now, in no order.
func (t *table[K, V]) list() []V {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.values()
}

// values is list for a caller that holds mu.
func (t *table[K, V]) values() []V { return slices.Collect(maps.Values(t.all)) }
