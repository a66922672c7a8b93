// Command kv is a key-value store, and the program to learn from. Values of more than
// 512 bytes go by RDMA, straight between the client's and the server's memory.
//
//	kv --listen 127.0.0.1:7000          a server, until it is interrupted
//	kv --addr 127.0.0.1:7000 put k v    a client
//	kv --addr 127.0.0.1:7000 get k
//
// With --inspect 127.0.0.1:6060 a browser shows there what the adapter does. With --traces DIR
// as well, its visitors may record what a connection carries, in files of that directory.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"godat/examples/internal/usage"
	dat "godat/runtime"
	"godat/runtime/inspect"
	"godat/runtime/rpc"
)

const (
	put = 1 + iota // a key, a zero and a short value; or a key, and a long value as the source
	get            // a key, and the sink for a long value; the answer is 4 bytes of length, and a short value

	short   = 512     // bytes of the longest value in a message
	longest = 1 << 20 // bytes of the longest value
)

func main() {
	provider := flag.String("provider", "iwarp", "provider and device to run on")
	listen := flag.String("listen", "", "serve on this `address`")
	addr := flag.String("addr", "", "the server's `address`")
	page := flag.String("inspect", "", "show the adapter in a browser at this `address`")
	traces := flag.String("traces", "", "let visitors of the page trace connections into this `directory`")
	usage.Flags(flag.CommandLine, errUsage.Error())
	flag.Parse()
	if err := usage.Reaches(*provider); err != nil {
		fmt.Fprintln(os.Stderr, "kv:", err)
		os.Exit(usage.Status)
	}
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) // in force until the process exits
	ia, err := dat.Open(ctx, *provider)
	if err == nil {
		var shown string
		if shown, err = inspect.Serve(ctx, *page, *traces, ia); shown != "" {
			fmt.Fprintln(os.Stderr, "shown at", shown)
		}
	}
	if err == nil && *listen != "" && flag.NArg() == 0 {
		err = errors.Join(serve(ctx, ia, *listen, os.Stdout), ia.Close())
	} else if err == nil {
		err = errors.Join(ask(ctx, ia, *addr, flag.Args(), os.Stdout), ia.Close())
	}
	switch {
	case err == nil:
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(usage.Status)
	default:
		fmt.Fprintln(os.Stderr, "kv:", err)
		os.Exit(usage.StatusOf(err))
	}
}

// methods are the names on the page and in metrics.
var methods = map[uint16]string{put: "put", get: "get"}

// errUsage is of a command line that makes no sense.
var errUsage = errors.New("usage: kv --listen HOST:PORT, or kv --addr HOST:PORT put KEY VALUE | get KEY")

// workers is how many requests are handled at a time. Each may wait for its client's memory.
const workers = 64

// store is the server.
type store struct {
	mu     sync.Mutex
	values map[string][]byte // which nobody changes once they are here
}

// serve serves until ctx ends.
func serve(ctx context.Context, ia *dat.IA, address string, out io.Writer) error {
	server, err := rpc.Listen(ctx, ia, address, rpc.Config{Methods: methods, Log: slog.New(slog.NewTextHandler(out, nil))})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, server.Addr())
	return server.Serve(ctx, workers, (&store{values: make(map[string][]byte)}).answer)
}

// answer does what a request says, and returns the answer.
func (s *store) answer(r *rpc.Request) (text []byte, err error) {
	key, value, _ := bytes.Cut(r.Payload(), []byte{0})
	switch n := r.SourceLen(); {
	case r.Method() == put && n <= longest:
		value = append(make([]byte, n), value...) // a long one is in the source
		if err = r.ReadBytes(value[:n], 0); err == nil {
			s.mu.Lock()
			s.values[string(key)] = value
			s.mu.Unlock()
		}
		return nil, err
	case r.Method() == get:
		s.mu.Lock()
		value, found := s.values[string(key)]
		s.mu.Unlock()
		if !found {
			return nil, errors.New("no such key")
		}
		text = binary.BigEndian.AppendUint32(nil, uint32(len(value)))
		if len(value) <= short {
			return append(text, value...), nil
		}
		return text, r.WriteBytes(value, 0)
	}
	return nil, errors.New("neither a put nor a get")
}

// ask does what the arguments of a client say, and prints the value.
func ask(ctx context.Context, ia *dat.IA, address string, args []string, out io.Writer) (err error) {
	if address == "" || !(len(args) == 3 && args[0] == "put" || len(args) == 2 && args[0] == "get") {
		return errUsage
	}
	c, err := rpc.Dial(ctx, ia, address, rpc.Config{Methods: methods})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	switch {
	case args[0] == "put" && len(args[2]) <= short:
		_, err = c.Call(ctx, rpc.Call{Method: put, Payload: []byte(args[1] + "\x00" + args[2])}, nil)
	case args[0] == "put":
		_, err = c.Call(ctx, rpc.Call{Method: put, Payload: []byte(args[1]), SourceBytes: []byte(args[2])}, nil)
	default:
		value := make([]byte, longest)
		text, err := c.Call(ctx, rpc.Call{Method: get, Payload: []byte(args[1]), SinkBytes: value}, nil)
		if err != nil {
			return err
		}
		if len(text) < 4 || binary.BigEndian.Uint32(text) > longest {
			return errors.New("the answer has no length of a value")
		}
		if len(text) > 4 {
			value = text[4:]
		} else {
			value = value[:binary.BigEndian.Uint32(text)]
		}
		fmt.Fprintf(out, "%s\n", value)
	}
	return err
}
