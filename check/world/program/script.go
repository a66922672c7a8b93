package program

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Trouble is something that a script brings about.
type Trouble struct {
	At   time.Duration // since the beginning
	Kind string        // hold, slow, reset, restart
	Host string        // a client's, or for restart the server's
	To   string        // a server's
	For  time.Duration
}

func (t Trouble) String() string {
	return fmt.Sprintf("%v %s-%s for %v", t.At, t.Host, t.To, t.For)
}

// Script draws troubles before the run: so one that fails is shortened by leaving some out, and the rest
// stays as it was.
func (w *World) Script(n int, within time.Duration, clients, servers []string, without []int) (list []Trouble) {
	draw := w.Draw(1)
	for i := range n {
		t := Trouble{
			At: time.Duration(draw.Int64N(int64(within))), For: time.Duration(1+draw.IntN(4000)) * time.Millisecond,
			Kind: []string{"hold", "slow", "reset", "restart"}[draw.IntN(4)],
			Host: clients[draw.IntN(len(clients))], To: servers[draw.IntN(len(servers))],
		}
		if !slices.Contains(without, i) {
			list = append(list, t)
		}
	}
	slices.SortStableFunc(list, func(a, b Trouble) int { return int(a.At - b.At) })
	return list
}

// Play brings the troubles about, one after the other, until ctx ends. restart starts a server of a host anew.
func (w *World) Play(ctx context.Context, list []Trouble, restart func(host string)) {
	for _, t := range list {
		if !sleep(ctx, time.Until(w.began.Add(t.At))) {
			return
		}
		switch {
		case t.Kind == "restart":
			w.Trouble(t.Kind, "%v", t)
			w.disturb("", t.To)
			restart(t.To)
		case w.Network == nil: // loop has no ways
		case t.Kind == "reset":
			w.Trouble(t.Kind, "%v", t)
			w.disturb(t.Host, t.To)
			w.Network.Reset(t.Host, t.To)
		case t.Kind == "hold":
			w.Trouble(t.Kind, "%v", t)
			w.disturb(t.Host, t.To)
			w.Network.Hold(t.Host, t.To)
			sleep(ctx, t.For)
			w.Network.Release(t.Host, t.To)
		case t.Kind == "slow":
			w.Trouble(t.Kind, "%v", t)
			w.disturb(t.Host, t.To)
			w.Network.Slow(t.Host, t.To, 200_000)
			sleep(ctx, t.For)
			w.Network.Slow(t.Host, t.To, 0)
		}
	}
}

// sleep sleeps, and reports whether ctx has not ended meanwhile.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
