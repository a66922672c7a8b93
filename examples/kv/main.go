// Command kv is a key-value store, and the program to learn from. Values of more than
// 512 bytes go by RDMA, straight between the client's and the server's memory.
//
//	kv -listen 127.0.0.1:7000          a server, until it is interrupted
//	kv -addr 127.0.0.1:7000 put k v    a client
//	kv -addr 127.0.0.1:7000 get k
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"

	dat "godat/runtime"
)

const (
	short   = 512     // bytes of the longest value in a message
	longest = 1 << 20 // bytes of the longest value
	message = 2 * short
)

func main() {
	provider := flag.String("provider", "iwarp", "provider and device to run on")
	listen := flag.String("listen", "", "serve on this `address`")
	addr := flag.String("addr", "", "the server's `address`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ia, err := dat.Open(ctx, *provider)
	switch {
	case err != nil:
	case *listen != "":
		err = errors.Join(serve(ctx, ia, *listen, os.Stdout), ia.Close())
	default:
		err = errors.Join(ask(ctx, ia, *addr, flag.Args(), os.Stdout), ia.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kv:", err)
		os.Exit(1)
	}
}

// serve serves until ctx ends. It is one goroutine, so the values need no lock.
func serve(ctx context.Context, ia *dat.IA, address string, out io.Writer) error {
	ln, err := ia.Listen(ctx, address, dat.ConnConfig{Message: message, Setup: open})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, ln.Addr())
	values := make(map[string]string)
	for {
		var err error
		select {
		case ev := <-ln.Requests():
			_, err = ln.Accept(dat.RequestOf(ev), nil)
		case ev := <-ln.Events():
			c := dat.ConnOf(ev)
			if b := c.Message(ev); b != nil {
				text := answer(values, c.Context.([]byte), string(b.Bytes()))
				copy(b.Resize(len(text)), text)
				err = c.Send(b)
			} else if ev.Ended() {
				err = errors.Join(ev.Err(), c.Close())
			}
		case <-ctx.Done():
			return ln.Shutdown(context.WithoutCancel(ctx))
		}
		if err != nil { // the error of one client: the others go on
			fmt.Fprintln(out, "kv:", err)
		}
	}
}

// open gives a client a window of the server's memory, and tells it where that is.
func open(c *dat.Conn) (private []byte, err error) {
	window, err := c.Alloc(longest, dat.RemoteRead|dat.RemoteWrite)
	if err != nil {
		return nil, err
	}
	c.Context = window.Bytes()
	return window.Remote(0, longest).MarshalBinary()
}

// answer serves a request: "put KEY\x00VALUE", "get KEY", or "long KEY\x00LENGTH" for a
// value in the window. It answers "value VALUE", "long LENGTH" or "error TEXT".
func answer(values map[string]string, window []byte, request string) string {
	op, rest, _ := strings.Cut(request, " ")
	key, value, _ := strings.Cut(rest, "\x00")
	switch op {
	case "put":
		values[key] = value
		return "value "
	case "long":
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 || n > len(window) {
			return "error the window has no such value"
		}
		values[key] = string(window[:n])
		return "value "
	case "get":
		value, found := values[key]
		if !found {
			return "error no such key"
		}
		if len(value) > short {
			return "long " + strconv.Itoa(copy(window, value))
		}
		return "value " + value
	}
	return "error no such operation"
}

// client is a connection to a server. One goroutine uses it.
type client struct {
	conn   *dat.Conn
	memory *dat.LMR          // for a long value
	window dat.RemoteSegment // the memory's counterpart at the server
}

// ask runs a client that does what the arguments say.
func ask(ctx context.Context, ia *dat.IA, address string, args []string, out io.Writer) error {
	c, err := ia.Dial(ctx, address, dat.ConnConfig{Message: message})
	if err != nil {
		return err
	}
	k := client{conn: c}
	if k.memory, err = c.Alloc(longest, dat.LocalRead|dat.LocalWrite); err != nil {
		return err
	}
	if k.window, err = dat.ParseRemoteSegment(c.Private()); err != nil {
		return err
	}
	switch {
	case len(args) == 3 && args[0] == "put":
		err = k.put(ctx, args[1], args[2])
	case len(args) == 2 && args[0] == "get":
		var value string
		if value, err = k.call(ctx, "get "+args[1]); err == nil {
			fmt.Fprintln(out, value)
		}
	default:
		err = errors.New("usage: kv -addr host:port put key value | get key")
	}
	return errors.Join(err, c.Shutdown(ctx))
}

func (k *client) put(ctx context.Context, key, value string) (err error) {
	if len(value) <= short {
		_, err = k.call(ctx, "put "+key+"\x00"+value)
		return err
	}
	copy(k.memory.Bytes(), value)
	if err = k.move(ctx, dat.OpWrite, len(value)); err == nil {
		_, err = k.call(ctx, "long "+key+"\x00"+strconv.Itoa(len(value)))
	}
	return err
}

// move writes or reads the first n bytes of the window. It fails if the window has
// fewer.
func (k *client) move(ctx context.Context, op dat.Op, n int) error {
	return k.conn.Do(ctx, dat.DTO{Op: op, Segment: k.memory.Segment(0, n), Remote: k.window.Slice(0, n)})
}

// call sends a request and waits for the value that answers it.
func (k *client) call(ctx context.Context, request string) (value string, err error) {
	b := k.conn.Buffer()
	if _, err = io.WriteString(b, request); err == nil {
		err = k.conn.Send(b)
	}
	if err == nil {
		b, err = k.conn.Receive(ctx)
	}
	if err != nil {
		return "", err
	}
	defer k.conn.Release(b)
	kind, value, _ := strings.Cut(string(b.Bytes()), " ")
	switch kind {
	case "value":
		return value, nil
	case "long":
		n, err := strconv.Atoi(value)
		if err == nil {
			err = k.move(ctx, dat.OpRead, n)
		}
		if err != nil {
			return "", err
		}
		return string(k.memory.Bytes()[:n]), nil
	}
	return "", errors.New("the server: " + value)
}
