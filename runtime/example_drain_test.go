package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// A server that is told to end takes no new clients, lets the handler finish that has a
// message, and gives it ten seconds for that. The client gets its answer, and then the end.
func ExampleListener_Stop() {
	ctx := context.Background()
	ia, err := dat.Open(ctx, "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	ln, err := ia.Listen(ctx, "", dat.ConnConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	begun, end := make(chan bool), make(chan bool)
	go func() { // the server
		for {
			select {
			case ev := <-ln.Requests():
				_, _ = ln.Accept(ep.RequestOf(ev), nil) // fails behind Stop
			case ev := <-ln.Events():
				switch c := dat.ConnOf(ev); {
				case ev.Number == event.Closed:
					return
				case ev.Ended():
					_ = c.Close()
				case ev.Op == hw.OpRecv:
					if b := c.Message(ev); b != nil { // nil behind the beginning of Shutdown
						go handle(c, b, begun, end)
					}
				}
			}
		}
	}()
	client, err := ia.Dial(ctx, ln.Addr(), dat.ConnConfig{})
	if err == nil {
		err = client.SendBytes([]byte("a long task"))
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	<-begun
	fmt.Println("stopped:", ln.Stop())
	_, err = ia.Dial(ctx, ln.Addr(), dat.ConnConfig{})
	fmt.Println("a new client is let in:", err == nil)
	end <- true // the handler answers while Shutdown waits
	patient, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	fmt.Println("shut down:", ln.Shutdown(patient))
	b, err := client.Receive(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("answer: %s\n", b.Bytes())
	client.Release(b)
	_, err = client.Receive(ctx)
	fmt.Println("then:", err)
	fmt.Println(errors.Join(client.Close(), ia.CloseGraceful()))
	// Output:
	// stopped: <nil>
	// a new client is let in: false
	// shut down: <nil>
	// answer: a long task is done
	// then: EOF
	// <nil>
}

// handle answers a message in the buffer that it came in.
func handle(c *dat.Conn, b *mem.Buffer, begun, end chan bool) {
	begun <- true
	<-end
	_, err := b.Write([]byte(" is done"))
	if err = errors.Join(err, c.Send(b)); err != nil {
		fmt.Println(err)
	}
}
