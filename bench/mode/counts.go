package mode

import (
	"errors"
	"fmt"
	"strings"
)

// Counts is how often each loop has done what it takes events by. Each loop counts that
// itself, so that Loop tells which one ran, whatever was asked for.
type Counts struct {
	Dequeues   int64 `json:"dequeues,omitempty"`   // of Poll, those that found nothing among them
	Waits      int64 `json:"waits,omitempty"`      // of Wait
	Receives   int64 `json:"receives,omitempty"`   // of Channel
	Batches    int64 `json:"batches,omitempty"`    // of Batch
	OneShots   int64 `json:"oneShots,omitempty"`   // of PerRequest
	Callbacks  int64 `json:"callbacks,omitempty"`  // of Callback
	Iterations int64 `json:"iterations,omitempty"` // of Iterator
}

// Loop is the mode whose loop ran. It is an error if none has, or several have.
func (c Counts) Loop() (Mode, error) {
	var ran []Mode
	var names []string
	for _, l := range []struct {
		mode  Mode
		count int64
	}{
		{Poll, c.Dequeues},
		{Wait, c.Waits},
		{Channel, c.Receives},
		{Batch, c.Batches},
		{PerRequest, c.OneShots},
		{Callback, c.Callbacks},
		{Iterator, c.Iterations},
	} {
		if l.count > 0 {
			ran, names = append(ran, l.mode), append(names, l.mode.Name)
		}
	}
	switch len(ran) {
	case 0:
		return Mode{}, errors.New("no loop has taken an event")
	case 1:
		return ran[0], nil
	}
	return Mode{}, fmt.Errorf("several loops took its events: %s", strings.Join(names, ", "))
}

// Counts is what the consumer's loops have done. No Take may be under way.
func (c *Consumer) Counts() Counts { return c.counts }

// Ran is the mode whose loop took the consumer's events. No Take may be under way, or the
// caller is called by it. It is an error if the dispatcher delivers in another way than that
// mode asks for.
func (c *Consumer) Ran() (Mode, error) {
	m, err := c.counts.Loop()
	if err == nil && c.d.Mode() != m.delivery {
		err = fmt.Errorf("the loop of %s took events of a dispatcher that delivers by %v", m.Name, c.d.Mode())
	}
	return m, err
}
