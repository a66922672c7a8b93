package runtime_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// Each connection leaves a file that Wireshark reads.
func ExampleWithTrace() {
	dir, err := os.MkdirTemp("", "traces")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	ia, err := dat.Open(ctx, "iwarp:127.0.0.1", dat.WithTrace(dir))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = ia.Dial(ctx, "127.0.0.1:1", dat.ConnConfig{}) // where nobody listens
	fmt.Println(err != nil, ia.Close())
	files, err := filepath.Glob(filepath.Join(dir, "*.pcapng"))
	fmt.Println(len(files), "files of connections that were made", err)
	// Output:
	// true <nil>
	// 0 files of connections that were made <nil>
}

// A connection that is up already leaves what it carries from now on in a file for Wireshark.
func ExampleEndpoint_trace() {
	ctx := context.Background()
	ia, err := dat.Open(ctx, "iwarp:127.0.0.1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	ln, err := ia.Listen(ctx, "", dat.ConnConfig{Depth: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, err := ln.Dial(ln.Addr(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err = ln.Accept(ep.RequestOf(<-ln.Requests()), nil); err != nil {
		fmt.Println(err)
		return
	}
	<-ln.Events() // both ends are up
	<-ln.Events()

	file, err := os.CreateTemp("", "trace-*.pcapng")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.Remove(file.Name())
	stop, err := conn.Endpoint.Trace(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = conn.SendBytes([]byte("hello"))
	fmt.Println((<-ln.Events()).Number, err, stop())
	// Output: DTO_COMPLETION <nil> <nil>
}

// A callback that waits for something does not delay the callbacks of other
// dispatchers: beyond the pool's share, callbacks get goroutines of their own.
func ExampleWithUpcalls() {
	ia, err := dat.Open(context.Background(), "loop", dat.WithUpcalls(1))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	dispatcher := func(callback func([]event.Event)) *evd.Dispatcher {
		d, err := ia.NewDispatcher(evd.Config{
			QLen: 4, Streams: event.StreamSoftware, Mode: evd.ModeCallback, Callback: callback,
		})
		if err != nil {
			panic(err)
		}
		return d
	}
	begun, ready, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	first := dispatcher(func([]event.Event) {
		close(begun)
		<-ready
		fmt.Println("the first goes on")
		close(done)
	})
	second := dispatcher(func([]event.Event) {
		fmt.Println("the second runs")
		close(ready)
	})
	if err = first.PostSoftware(nil); err != nil {
		fmt.Println(err)
		return
	}
	<-begun
	if err = second.PostSoftware(nil); err != nil {
		fmt.Println(err)
		return
	}
	<-done
	// Output:
	// the second runs
	// the first goes on
}

// A server of large blocks asks for 2 MiB pages. Alloc rounds the memory up to whole
// pages; the region is as long as the program says.
func ExampleWithHugePages() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		blocks, err := p.pz.Alloc(3<<20, hw.LocalRead|hw.LocalWrite, mem.WithHugePages())
		if err != nil {
			return err
		}
		fmt.Println(len(blocks.Bytes())>>20, "MiB")
		return blocks.Free()
	})
	// Output: 3 MiB
}

const registry = `
# name        api   threads     default     library          provider   instance     platform
ofa-v2-ib0    u2.0  threadsafe  default     libdaplofa.so.2  dapl.2.0   "ib0 0"      ""
storage       u2.0  threadsafe  nondefault  godat/loop       godat.2.0  ""           ""
unfinished    u2.0  threadsafe
`

// A program opens the adapters that the machine's registry file names. The environment
// may name another file.
func ExampleProviders() {
	dir, err := os.MkdirTemp("", "dat")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "dat.conf")
	if err = os.WriteFile(file, []byte(registry), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	if err = os.Setenv("DAT_OVERRIDE", file); err != nil {
		fmt.Println(err)
		return
	}
	defer os.Unsetenv("DAT_OVERRIDE")

	all, err := dat.Providers()
	fmt.Println("a line is left out:", strings.HasSuffix(err.Error(), "line 5: 3 fields, want 8"))
	for _, p := range all {
		if p.Name == "ofa-v2-ib0" || p.Name == "storage" { // the library of the first has no provider in this program
			ia, err := dat.Open(context.Background(), p.Name)
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println(p.Name, "opens", ia.Attr().Provider, ia.Close())
		}
	}
	// Output:
	// a line is left out: true
	// storage opens loop <nil>
}
