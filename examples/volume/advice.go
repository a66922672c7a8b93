package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"godat/examples/volume/node"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/secure"
	"godat/hw"
	"godat/hw/event"
)

// advised is an error in words of this program, which say what to do. Below it is the error that was met.
type advised struct {
	text string
	err  error
}

// errSilent is below the error of an address at which nobody listens.
var errSilent = errors.New("nobody listens there")

// errNoNode is below the error of an address at which something else listens.
var errNoNode = errors.New("no node listens there")

func (a *advised) Error() string { return a.text }

// Unwrap is the error that was met.
func (a *advised) Unwrap() error { return a.err }

func advise(err error, format string, args ...any) error {
	return &advised{fmt.Sprintf(format, args...), err}
}

// hostsPort is what somebody does who gives the port of hosts.
const hostsPort = "give an address of --peers, and not that of --listen, which is for hosts"

// notReached says why no node answers at an address. secured is set if this end has certificates.
func notReached(addr string, secured bool, err error) error {
	switch {
	case err == nil:
		return nil
	case secure.Distrusts(err):
		return advise(err, "%s: the token, or --tls-cert and so on, is of another volume than the node at this address: %s", addr, node.Words(err))
	case strings.Contains(err.Error(), "connection refused"):
		return advise(errors.Join(errSilent, err), "%s: nobody listens there: look whether the node runs, and %s", addr, hostsPort)
	case errors.Is(err, context.DeadlineExceeded):
		return advise(err, "%s: what listens there does not answer in time: the node is stopped, or busy; ask another one", addr)
	case errors.Is(err, event.Error(event.PeerRejected)):
		return advise(errors.Join(errNoNode, err), "%s: what listens there is no port between nodes: %s", addr, hostsPort)
	case errors.Is(err, event.Error(event.NonPeerRejected)) && secured:
		return advise(err, "%s: what listens there does not speak TLS between nodes: %s; or the volume's nodes have no certificates, and its token is another one", addr, hostsPort)
	case errors.Is(err, context.Canceled):
		return err
	}
	return advise(err, "%s: %s", addr, node.Words(err))
}

// hungUp reports whether somebody listens at an address and has ended the connection at once, as a node does that
// wants a certificate.
func hungUp(err error) bool {
	return errors.Is(err, event.Error(event.NonPeerRejected)) && !strings.Contains(err.Error(), "connection refused")
}

// taken says what to do when nobody can listen at an address, or another program does. An address without an option is
// that of --peers, which the directory has.
func taken(addr, option string, err error) error {
	var unknown *net.DNSError
	host, _, _ := net.SplitHostPort(addr)
	foreign := errors.Is(err, syscall.EADDRNOTAVAIL) || errors.As(err, &unknown)
	switch {
	case foreign && option == "":
		return advise(err, "%s is no address of this machine, and is where the other nodes look for this node: serve the directory where it is one, or replace the node by one of another id", host)
	case foreign:
		all := ", or 0.0.0.0 for all"
		if option == "provider" {
			all = ""
		}
		return usageError{advise(err, "--%s: %s is no address of this machine: take one that it has%s", option, host, all)}
	case errors.Is(err, syscall.EACCES) && option != "":
		return usageError{advise(err, "--%s: this process may not listen at %s: take a port above 1023", option, addr)}
	case !errors.Is(err, hw.ErrConnQualInUse) && !errors.Is(err, syscall.EADDRINUSE):
		return err
	}
	if option == "" {
		return advise(err, "another program listens at %s, which is this node's address for the other nodes: end that program (`ss -ltnp` names it); "+
			"the others know the node by this address, so to move it, replace it by a node of another id", addr)
	}
	return advise(err, "another program listens at %s: end it (`ss -ltnp` names it), or give another --%s", addr, option)
}

// full says what to do when a file system of a node's directory is full.
func full(dirs string, err error) error {
	if !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	return advise(err, "%s: the file system is full: make room there (a node that has its files wants %d MiB, for the next file of its log), and serve it again: %v", dirs, raftlog.Segment>>20, err)
}

// busy says what to do when another process has a node's directory.
func busy(dir string, err error) error {
	if !errors.Is(err, syscall.EAGAIN) {
		return err
	}
	return advise(err, "%s: another process serves or recovers this directory: end that one first (`fuser %[1]s/journal` names it)", dir)
}
