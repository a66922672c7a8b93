package target_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/store"
	"godat/examples/nvmeof/target"
	dat "godat/runtime"
)

const subsystem = "nqn.2026-11.example:disk"

// A program that embeds the target: it serves a disk in memory, to which a host writes. With "iwarp" in place of
// "loop" the hosts are Linux's, too.
func Example() {
	if err := serve(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: hello
}

func serve(ctx context.Context) (err error) {
	ia, err := dat.Open(ctx, "loop")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ia.Close()) }()
	disk, err := store.NewMemory(1 << 20) // or a Store of your own
	if err != nil {
		return err
	}
	t, err := target.New(ctx, ia, target.Config{Subsystem: subsystem, Namespaces: []target.Namespace{{Store: disk}}})
	if err != nil {
		return errors.Join(err, disk.Close())
	}
	ctx, stop := context.WithCancel(ctx)
	var running errgroup.Group
	running.Go(func() error { return t.Run(ctx) }) // until ctx ends; then it closes the disk
	err = use(ctx, ia, t.Addr())
	stop()
	return errors.Join(err, running.Wait())
}

func use(ctx context.Context, ia *dat.IA, addr string) (err error) {
	c, err := host.Connect(ctx, ia, host.Config{Addr: addr, Subsystem: subsystem})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	disk, err := c.Disk(ctx, 1)
	if err != nil {
		return err
	}
	block := make([]byte, 4096)
	copy(block, "hello")
	if _, err = disk.WriteAt(block, 0); err != nil {
		return err
	}
	if _, err = disk.ReadAt(block, 0); err == nil {
		fmt.Printf("%s\n", bytes.TrimRight(block, "\x00"))
	}
	return err
}
