// Package consumer uses the library from outside its module: what it needs must
// be exported, and the import path must resolve.
package consumer

import (
	"context"
	"testing"
	"time"

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
	events, err := ia.NewDispatcher(dat.DispatcherConfig{Mode: dat.ModeChannel, QLen: 32})
	check(t, err)
	psp, err := ia.NewPSP(dat.PSPConfig{Dispatcher: events})
	check(t, err)
	buf, err := pz.Alloc(64, dat.LocalRead|dat.LocalWrite)
	check(t, err)

	cfg := dat.EndpointConfig{PZ: pz, Recv: events, Request: events, Conn: events}
	client, err := ia.NewEndpoint(cfg)
	check(t, err)
	server, err := ia.NewEndpoint(cfg)
	check(t, err)
	check(t, server.PostRecv(2, dat.Default, buf.Segment(32, 32)))
	check(t, client.Connect(dat.ConnectConfig{Qual: psp.Qual()}))

	n := copy(buf.Bytes(), "hello")
	for up, done := 0, 0; done < 2; {
		select {
		case ev := <-events.C():
			check(t, ev.Err())
			switch ev.Number {
			case dat.ConnectionRequest:
				check(t, dat.RequestOf(ev).Accept(server, nil))
			case dat.Established:
				if up++; up == 2 {
					check(t, client.PostSend(1, dat.Default, buf.Segment(0, n)))
				}
			case dat.DTOCompletion:
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
