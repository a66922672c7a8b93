package iwarp

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"godat/hw"
)

// traced is conn, which the end first has asked for, or a traceConn around it if the connection
// has a trace. A traceConn has no descriptor for the data path, so all octets pass through its
// Read and Write. Until ctx ends, traced waits for Config.Trace.
func (d *device) traced(ctx context.Context, conn net.Conn, first int) (net.Conn, error) {
	w, err := d.traceOf(ctx, conn)
	if w == nil || err != nil {
		return conn, err
	}
	return &traceConn{conn, newCapture(conn, w, first)}, nil
}

// traceOf makes the file for a connection, if it has one.
func (d *device) traceOf(ctx context.Context, conn net.Conn) (io.WriteCloser, error) {
	trace := d.provider.cfg.Trace
	switch {
	case trace == nil && d.set.trace == "":
		return nil, nil
	case trace == nil:
		return d.traceFile(conn), nil
	}
	h := hook[io.WriteCloser]{of: &d.hooks, name: "iwarp.Config.Trace", f: func() (io.WriteCloser, error) {
		return trace(conn.LocalAddr(), conn.RemoteAddr()), nil
	}, drop: func(w io.WriteCloser) {
		if w != nil {
			_ = w.Close()
		}
	}}
	return h.call(ctx, d.set.linger)
}

// traceVariable is the environment variable that has the place of the parameter trace.
const traceVariable = "GODATTRACE"

// traceDir is the directory for traces that is asked for, which it makes; empty for none.
func (s *settings) traceDir() (string, error) {
	dir := cmp.Or(s.trace, os.Getenv(traceVariable))
	if dir == "" {
		return "", nil
	}
	what := "parameter trace"
	if s.variable = s.trace == ""; s.variable {
		what = "environment variable " + traceVariable
	}
	return dir, badValue(what, dir, os.MkdirAll(dir, 0o700))
}

// traceFile makes the file for a connection, which is named by time and addresses and is
// for its user alone, because it has what the connection carries. It returns nil if there
// can be no file.
func (d *device) traceFile(conn net.Conn) io.WriteCloser {
	ends := fmt.Sprintf("%v-%v", conn.LocalAddr(), conn.RemoteAddr())
	name := time.Now().Format("20060102-150405.000-") + strings.Map(fileRune, ends)
	f, err := os.CreateTemp(d.set.trace, name+"-*.pcapng")
	if err != nil {
		d.untracedBy(err)
		return nil
	}
	return &traceWriter{f, d}
}

// traceWriter is a trace's file, which says when it takes no more.
type traceWriter struct {
	*os.File
	d *device
}

func (w *traceWriter) Write(b []byte) (int, error) {
	n, err := w.File.Write(b)
	if err != nil {
		w.d.untracedBy(err)
	}
	return n, err
}

// untracedBy says, once for a device, why a connection goes on without its trace. Who has set the variable may run a program that
// has no log.
func (d *device) untracedBy(err error) {
	d.untraced.Do(func() {
		err = fmt.Errorf("a connection's trace can't be written: it has none, or ends early: look at the directory, and whether its file system is full: %w", err)
		if d.set.variable {
			fmt.Fprintf(os.Stderr, "godat: %s: %v\n", traceVariable, err)
		}
		if d.async != nil {
			d.async(hw.AsyncEvent{Kind: hw.AsyncProviderError, Err: err})
		}
	})
}

// fileRune is r, or a character that a file's name may have on every system.
func fileRune(r rune) rune {
	if strings.ContainsRune(`:/\*%`, r) {
		return '_'
	}
	return r
}

// traceConn records the octets that it reads and writes.
type traceConn struct {
	net.Conn
	*capture
}

// NetConn is the connection that is traced; tcpUnder uses it.
func (t *traceConn) NetConn() net.Conn { return t.Conn }

func (t *traceConn) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	t.data(there, b[:n])
	if err == io.EOF {
		t.end(there)
	}
	return n, err
}

func (t *traceConn) Write(b []byte) (int, error) {
	n, err := t.Conn.Write(b)
	t.data(here, b[:n])
	return n, err
}

// CloseWrite closes this end's half.
func (t *traceConn) CloseWrite() error {
	t.end(here)
	return closeWrite(t.Conn)
}

// Close closes the connection and the file.
func (t *traceConn) Close() error {
	defer t.close()
	return t.Conn.Close()
}
