package runtime_test

import (
	"context"
	"fmt"
	"time"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	dat "godat/runtime"
)

// What lives on an adapter, and what it does: here a listener, and both ends of a
// connection that has carried a message.
func ExampleIA_Snapshot() {
	ia, err := dat.Open(context.Background(), "loop")
	if err != nil {
		panic(err)
	}
	defer ia.Close()
	ln, err := ia.Listen(context.Background(), "", dat.ConnConfig{})
	if err != nil {
		panic(err)
	}
	client, err := ln.Dial(ln.Addr(), nil)
	if err != nil {
		panic(err)
	}
	if _, err = ln.Accept(ep.RequestOf(<-ln.Requests()), nil); err != nil {
		panic(err)
	}
	for ev := range ln.Events() {
		if ev.Number == event.Established && dat.ConnOf(ev) == client {
			err = client.SendBytes([]byte("hello"))
		}
		if err != nil || ev.Op == hw.OpRecv {
			break
		}
	}
	now, err := ia.Snapshot()
	if err != nil {
		panic(err)
	}
	for _, l := range now.Listeners {
		fmt.Println(l.Accepted, "accepted,", l.Taken, "of", l.Conns, "places taken")
	}
	for _, c := range now.Conns {
		for _, m := range c.Endpoint.Receives.Moved {
			fmt.Println(c.Endpoint.State, m.Kind, m.Operations, m.Octets)
		}
	}
	// Output:
	// 1 accepted, 2 of 128 places taken
	// CONNECTED RECEIVE 1 5
}

// disk is what a program says of a disk. It is a [dat.Troubled].
type disk struct {
	Name  string
	Queue int // requests that wait
	Full  bool
}

func (d disk) Trouble(time.Duration) string {
	if d.Full {
		return "is full: delete something, or make it larger"
	}
	return ""
}

// A program's own rows in the snapshots of an adapter, and on the page of godat/runtime/inspect.
func ExampleIA_Report() {
	ia, err := dat.Open(context.Background(), "loop")
	if err != nil {
		panic(err)
	}
	defer ia.Close()
	stop, err := ia.Report("disks", func() []any {
		return []any{disk{Name: "a", Queue: 3}, disk{Name: "b", Full: true}}
	})
	if err != nil {
		panic(err)
	}
	defer stop()
	now, err := ia.Snapshot()
	if err != nil {
		panic(err)
	}
	for _, row := range now.Reports["disks"] {
		fmt.Printf("%+v: %q\n", row, row.(dat.Troubled).Trouble(time.Second))
	}
	// Output:
	// {Name:a Queue:3 Full:false}: ""
	// {Name:b Queue:0 Full:true}: "is full: delete something, or make it larger"
}
