// Command connecho answers each message with itself, from a goroutine for each message: the
// server of README with handlers that take their time.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"

	"godat/ep"
	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

func main() {
	provider := flag.String("provider", "iwarp:127.0.0.1", "provider and device to run on")
	listen := flag.String("listen", "127.0.0.1:0", "serve on this `address`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := serve(ctx, *provider, *listen, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "connecho:", err)
		os.Exit(1)
	}
}

// window is how many bytes of the server's memory each peer may read and write.
const window = 64 << 10

func serve(ctx context.Context, provider, address string, out io.Writer) error {
	ia, err := dat.Open(ctx, provider)
	if err != nil {
		return err
	}
	ln, err := ia.Listen(ctx, address, dat.ConnConfig{Setup: open})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, ln.Addr())
	for {
		select {
		case ev := <-ln.Requests():
			_, err = ln.Accept(ep.RequestOf(ev), nil)
		case ev := <-ln.Events():
			c := dat.ConnOf(ev)
			if b := c.Message(ev); b != nil {
				go handle(c, b)
			} else if err = ev.Err(); ev.Ended() {
				_ = c.Close()
			}
		case <-ctx.Done():
			return ia.Close()
		}
		if err != nil { // one peer's
			fmt.Fprintln(out, "connecho:", err)
		}
	}
}

func open(c *dat.Conn) ([]byte, error) {
	memory, err := c.Alloc(window, hw.AllPrivileges|hw.RemoteAtomic)
	if err != nil {
		return nil, err
	}
	return memory.Remote(0, window).MarshalBinary()
}

// handle answers a message. It works the longer the larger the first byte is, and ends the
// process if the buffer, which belongs to it, changes meanwhile.
func handle(c *dat.Conn, b *mem.Buffer) {
	message := bytes.Clone(b.Bytes())
	for n := 0; len(message) > 0 && n < int(message[0]); n++ {
		sha256.Sum256(message)
		runtime.Gosched()
		if !bytes.Equal(b.Bytes(), message) {
			panic(fmt.Sprintf("the buffer of a handler, %d bytes, has changed", len(message)))
		}
	}
	copy(b.Bytes(), message)
	_ = c.Send(b) // an error is that of a peer that has gone
}
