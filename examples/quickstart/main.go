// Command quickstart sends a message from one endpoint to another.
package main

import (
	"context"
	"fmt"
	"time"

	dat "godat/runtime"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	ia := must(dat.Open(ctx, "loop"))
	defer ia.Close()
	pz := must(ia.NewPZ())
	mem := must(pz.Alloc(4096, dat.AllPrivileges))
	events := must(ia.NewDispatcher(dat.DispatcherConfig{Mode: dat.ModeChannel, QLen: 64}))
	cfg := dat.EndpointConfig{PZ: pz, Recv: events, Request: events, Conn: events}
	client, server := must(ia.NewEndpoint(cfg)), must(ia.NewEndpoint(cfg))
	listener := must(ia.NewPSP(dat.PSPConfig{Dispatcher: events}))

	check(server.PostRecv(1, dat.Default, mem.Segment(2048, 2048)))
	check(client.Connect(dat.ConnectConfig{Addr: ia.Attr().Address, Qual: listener.Qual()}))
	for done := 0; done < 2; {
		select {
		case ev := <-events.C():
			check(ev.Err())
			switch ev.Number {
			case dat.ConnectionRequest:
				check(dat.RequestOf(ev).Accept(server, nil))
			case dat.Established:
				if dat.EndpointOf(ev) == client {
					n := copy(mem.Bytes(), "hello")
					check(client.PostSend(2, dat.Default, mem.Segment(0, n)))
				}
			case dat.DTOCompletion:
				fmt.Printf("%v with cookie %d moved %d bytes\n", ev.Op, ev.Cookie, ev.Length)
				done++
			default:
				panic(ev.Number)
			}
		case <-ctx.Done():
			check(ctx.Err())
		}
	}
	fmt.Printf("%s\n", mem.Bytes()[2048:2053])
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
