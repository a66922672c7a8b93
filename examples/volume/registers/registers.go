// Package registers judges registers: ranges of a disk that several clients write and read. What they saw must have an
// order in which each read brings what was written last. Porcupine looks for it.
package registers

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// Access is a read or a write of a register. Each of its words is judged by itself, since a read at the same time as a
// write may see both.
type Access struct {
	Register int
	Write    bool
	Value    uint64 // of a write: one that no other write of the register has, and not 0, which is there before
}

// Never is the end of a write without an answer: it may still have its effect.
const Never = math.MaxInt64

// word is an access of one word of a register.
type word struct {
	Access
	number int
}

// model is a word. The output of a read is the value that it returned.
var model = porcupine.Model{
	Partition: func(all []porcupine.Operation) (parts [][]porcupine.Operation) {
		by := make(map[[2]int][]porcupine.Operation)
		for _, o := range all {
			in := o.Input.(word)
			key := [2]int{in.Register, in.number}
			by[key] = append(by[key], o)
		}
		for _, part := range by {
			parts = append(parts, decided(part))
		}
		return parts
	},
	Init: func() any { return uint64(0) },
	Step: func(state, input, output any) (bool, any) {
		if in := input.(word); in.Write {
			return true, in.Value
		}
		return output.(uint64) == state.(uint64), state
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v → %v", input, output) },
}

// decided is the history of a word, in which writes without an answer have an end or are left out.
// All values differ. A write that some read saw has had its effect by the end of the first such read;
// one that no read saw explains none. So the verdict is the same, and porcupine finds it soon.
func decided(part []porcupine.Operation) (all []porcupine.Operation) {
	seen := make(map[uint64]int64) // up to when a value was read first
	for _, o := range part {
		if value := o.Output.(uint64); !o.Input.(word).Write && (seen[value] == 0 || o.Return < seen[value]) {
			seen[value] = o.Return
		}
	}
	for _, o := range part {
		if o.Return == Never {
			if o.Return = seen[o.Input.(word).Value]; o.Return == 0 {
				continue
			}
		}
		all = append(all, o)
	}
	return all
}

// History is what clients saw. Its methods are safe for concurrent use.
type History struct {
	mu   sync.Mutex
	all  []porcupine.Operation // of words
	ends []int64               // of accesses with an answer
}

// Add adds an access of a client, with the times of its call and of its answer, or Never. A read has brought the values
// of the register's words; a write has written its own to all words, and has a value of each, whatever it is.
func (h *History) Add(client int, a Access, begun, end int64, values []uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if end != Never {
		h.ends = append(h.ends, end)
	}
	for i, value := range values {
		if a.Write {
			value = a.Value
		}
		h.all = append(h.all, porcupine.Operation{ClientId: client, Input: word{a, i}, Output: value, Call: begun, Return: end})
	}
}

// Answered is how many accesses had an answer.
func (h *History) Answered() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.ends)
}

// Pause is the longest time without an answer.
func (h *History) Pause() (longest time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.Sort(h.ends)
	for i := 1; i < len(h.ends); i++ {
		longest = max(longest, time.Duration(h.ends[i]-h.ends[i-1]))
	}
	return longest
}

// Check looks for the order, for some time at most; 0 is no limit. The error says that it found none.
func (h *History) Check(most time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if result := porcupine.CheckOperationsTimeout(model, h.all, most); result != porcupine.Ok {
		return fmt.Errorf("registers: %d answered reads and writes have no order in which each read brings what was written last: %v", len(h.ends), result)
	}
	return nil
}
