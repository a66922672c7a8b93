package main

import (
	"net"
	"runtime"
	"sync/atomic"
)

// bareConn is one end of the least that a connection within a process can be: room for one
// message, a counter and a wake-up. It has no engine, lock, deadline or end, and so says
// what two goroutines that take turns cost whatever carries their bytes.
type bareConn struct {
	net.Conn // nil
	in, out  *bareBox
	wait     func(*bareBox)
}

// bareBox is the room for one message.
type bareBox struct {
	count   atomic.Uint64
	message [messageSize]byte
	_       [64]byte
	waiting atomic.Bool
	wake    chan struct{}
	taken   uint64
	_       [64]byte
}

// barePair is a connection whose ends wait as wait does.
func barePair(wait func(*bareBox)) (a, b net.Conn) {
	there, back := &bareBox{wake: make(chan struct{}, 1)}, &bareBox{wake: make(chan struct{}, 1)}
	return &bareConn{in: back, out: there, wait: wait}, &bareConn{in: there, out: back, wait: wait}
}

func (c *bareConn) Write(p []byte) (int, error) {
	n := copy(c.out.message[:], p)
	c.out.count.Add(1)
	if c.out.waiting.Load() {
		select {
		case c.out.wake <- struct{}{}:
		default:
		}
	}
	return n, nil
}

func (c *bareConn) Read(p []byte) (int, error) {
	for !c.in.ready() {
		c.wait(c.in)
	}
	c.in.taken++
	return copy(p, c.in.message[:]), nil
}

func (b *bareBox) ready() bool { return b.count.Load() != b.taken }

// The ways to wait.
func (b *bareBox) yield() { runtime.Gosched() }

func (b *bareBox) spin() {
	for range 1000 {
		if b.ready() {
			return
		}
	}
	runtime.Gosched()
}

func (b *bareBox) park() {
	b.waiting.Store(true)
	if !b.ready() {
		<-b.wake
	}
	b.waiting.Store(false)
}

// bareTrips are round trips over bare connections, for each way to wait.
func bareTrips() (list []contestant) {
	for _, way := range []struct {
		name string
		wait func(*bareBox)
	}{{"bare, parks", (*bareBox).park}, {"bare, spins", (*bareBox).spin}, {"bare, yields", (*bareBox).yield}} {
		a, b := barePair(way.wait)
		list = append(list, connPingPong(way.name, a, b, messageSize))
	}
	return list
}
