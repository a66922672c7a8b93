package ends

import (
	"errors"
	"net"
	"sync"
)

// listener is a listener on the loopback whose Close ends the connections, too: a server is closed
// when its client has gone, and a stranger's connection, such as a port scanner's, would stay.
type listener struct {
	net.Listener

	mu     sync.Mutex
	conns  []net.Conn
	closed bool
}

// Listen listens on the loopback.
func Listen() (net.Listener, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &listener{Listener: ln}, nil
}

// Each serves connections, with a goroutine for each, until the listener is closed. wait waits for all.
func Each(ln net.Listener, serve func(net.Conn)) (wait func()) {
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return // it is closed
			}
			running.Go(func() { serve(conn) })
		}
	})
	return running.Wait
}

func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errors.Join(net.ErrClosed, conn.Close())
	}
	l.conns = append(l.conns, conn)
	return conn, nil
}

func (l *listener) Close() error {
	err := l.Listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, conn := range l.conns {
		_ = conn.Close() // fails if its server has closed it
	}
	return err
}
