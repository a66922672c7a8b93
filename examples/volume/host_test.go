package main

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
	dat "godat/runtime"
)

// multipath is a host with a way to each node. Its methods may be called from any goroutine.
type multipath struct {
	t         testing.TB
	ia        *dat.IA
	addrs     []string
	subsystem string
	disk      uint32 // the namespace

	mu   sync.Mutex
	ways []way // by address
	none []int // the addresses that the host does not reach
	best int
}

type way struct {
	controller *host.Controller
	disk       *host.Disk
}

func (c *cluster) host() *multipath {
	h := &multipath{t: c, ia: c.ia, addrs: c.listens, subsystem: c.token.Subsystem.Name(), disk: 1, ways: make([]way, most)}
	c.hosts = append(c.hosts, h)
	c.Cleanup(func() {
		for i := range h.ways {
			h.lose(i, h.ways[i])
		}
	})
	return h
}

// connect is a way to the best node, which is made if there is none.
func (h *multipath) connect() (int, way, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := h.best
	if slices.Contains(h.none, i) {
		return i, way{}, errCut
	}
	if h.ways[i].disk != nil {
		return i, h.ways[i], nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	c, err := host.Connect(ctx, h.ia, host.Config{Addr: h.addrs[i], Subsystem: h.subsystem, Queues: 2})
	if err != nil {
		return i, way{}, err
	}
	d, err := c.Disk(ctx, h.disk)
	if err != nil {
		return i, way{}, errors.Join(err, c.Close())
	}
	h.ways[i] = way{c, d}
	return i, h.ways[i], nil
}

var errCut = errors.New("the way is cut")

// cut cuts the ways to nodes, and mends all others.
func (h *multipath) cut(none ...int) {
	h.mu.Lock()
	h.none = none
	ways := slices.Clone(h.ways)
	h.mu.Unlock()
	for _, i := range none {
		h.lose(i, ways[i])
	}
}

// next takes another node, if i is still the best.
func (h *multipath) next(i int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.best == i {
		h.best = (i + 1) % len(h.addrs)
	}
}

// lose gives up a way.
func (h *multipath) lose(i int, w way) {
	h.mu.Lock()
	mine := h.ways[i] == w
	if mine {
		h.ways[i] = way{}
	}
	h.mu.Unlock()
	if mine && w.controller != nil {
		_ = w.controller.Close() // of a node that may be dead
	}
}

// commandTime is how long a host waits for a command.
const commandTime = 3 * time.Second

// try runs a command at the best node. After an error the next one is the best. never says that
// the command had no effect and will have none.
func (h *multipath) try(op nvme.Opcode, b []byte, off int) (never bool, err error) {
	i, w, err := h.connect()
	if err != nil {
		h.next(i)
		return true, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	blocks := w.disk.BlockSize()
	c := w.disk.Command(op)
	c.SetRange(uint64(off/blocks), uint32(len(b)/blocks))
	_, err = w.disk.Do(ctx, c, b)
	var status nvme.StatusError
	switch {
	case err == nil:
		return false, nil
	case !errors.As(err, &status):
		h.lose(i, w)
	}
	h.next(i)
	return nvme.Status(status) == nvme.ANAInaccessibleStatus, err
}

// must runs a command until it succeeds.
func (h *multipath) must(op nvme.Opcode, b []byte, off int) {
	begun := time.Now()
	for {
		_, err := h.try(op, b, off)
		if err == nil {
			return
		}
		require.Less(h.t, time.Since(begun), patience, "%v", err)
		time.Sleep(10 * time.Millisecond) // until the next try of a node that may not serve yet
	}
}

// placed is n bytes that carry their place and a version.
func placed(off, n int, version uint64) []byte {
	b := make([]byte, n)
	for at := 0; at < n; at += 16 {
		binary.LittleEndian.PutUint64(b[at:], version)
		binary.LittleEndian.PutUint64(b[at+8:], uint64(off+at))
	}
	return b
}
