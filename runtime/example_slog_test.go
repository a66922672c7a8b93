package runtime_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	dat "godat/runtime"
)

// A program that logs by log/slog.
func ExampleWithSlog() {
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	ia, err := dat.Open(context.Background(), "loop", dat.WithSlog(log))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err = ia.Close(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// level=INFO msg=opened ia=loop provider=loop device=loop
	// level=INFO msg=closed ia=loop
}

// A handle says in a log what it is: log/slog calls its LogValue.
func ExampleListener_LogValue() {
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	ia, err := dat.Open(context.Background(), "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	ln, err := ia.Listen(context.Background(), "loop:7000", dat.ConnConfig{Conns: 16})
	if err != nil {
		fmt.Println(err)
		return
	}
	log.Info("serving", "listener", ln)
	// Output:
	// level=INFO msg=serving listener.address=loop:7000 listener.connections=0 listener.of=16
}
