// Command quickstart is a server that answers each message with itself, and its client.
package main

import (
	"context"
	"errors"
	"fmt"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	dat "godat/runtime"
)

func main() { fmt.Println(run(context.Background())) }

func run(ctx context.Context) (answer string, err error) {
	ia, err := dat.Open(ctx, "loop") // or "iwarp": the same over TCP
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, ia.Close()) }()
	ln, err := ia.Listen(ctx, "", dat.ConnConfig{Depth: 16, Message: 4096})
	if err != nil {
		return "", err
	}
	client, err := ln.Dial(ln.Addr(), nil)
	for err == nil {
		select { // all connections, of servers and clients, in one loop
		case ev := <-ln.Requests():
			_, _ = ln.Accept(ep.RequestOf(ev), nil) // an error concerns that client alone
		case ev := <-ln.Events():
			switch c := dat.ConnOf(ev); {
			case ev.Ended() && (c == client || c == nil): // c is nil when the listener has been closed elsewhere
				return "", ev.Err()
			case ev.Ended(): // the others go on
				fmt.Println(c, "has ended:", ev.Err(), c.Close())
			case ev.Number == event.Established && c == client:
				err = c.SendBytes([]byte("hello"))
			case ev.Op == hw.OpRecv && c == client:
				return fmt.Sprintf("%q", c.Message(ev).Bytes()), ln.Shutdown(ctx)
			case ev.Op == hw.OpRecv: // the server answers from the buffer it came in
				_ = c.Send(c.Message(ev)) // an error concerns c alone: log it, and go on
			}
		}
	}
	return "", err
}
