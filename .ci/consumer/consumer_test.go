// Package consumer uses the library from outside its module: what it needs must
// be exported, and the import path must resolve.
package consumer

import (
	"context"
	"testing"
	"time"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	dat "godat/runtime"
)

func TestHello(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ia, err := dat.Open(ctx, "loop")
	check(t, err)
	defer func() { check(t, ia.Close()) }()
	pz, err := ia.NewPZ()
	check(t, err)
	events, err := ia.NewDispatcher(evd.Config{Mode: evd.ModeChannel, QLen: 32})
	check(t, err)
	psp, err := ia.NewPSP(ep.PSPConfig{Dispatcher: events})
	check(t, err)
	buf, err := pz.Alloc(64, hw.LocalRead|hw.LocalWrite)
	check(t, err)

	cfg := ep.Config{PZ: pz, Recv: events, Request: events, Conn: events}
	client, err := ia.NewEndpoint(cfg)
	check(t, err)
	server, err := ia.NewEndpoint(cfg)
	check(t, err)
	check(t, server.PostRecv(2, hw.Default, buf.Segment(32, 32)))
	check(t, client.Connect(ep.ConnectConfig{Qual: psp.Qual()}))

	n := copy(buf.Bytes(), "hello")
	for up, done := 0, 0; done < 2; {
		select {
		case ev := <-events.C():
			check(t, ev.Err())
			switch ev.Number {
			case event.ConnectionRequest:
				check(t, ep.RequestOf(ev).Accept(server, nil))
			case event.Established:
				if up++; up == 2 {
					check(t, client.PostSend(1, hw.Default, buf.Segment(0, n)))
				}
			case event.DTOCompletion:
				done++
			default:
				t.Fatal(ev)
			}
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
	}
	if got := string(buf.Bytes()[32 : 32+n]); got != "hello" {
		t.Fatalf("got %q", got)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
