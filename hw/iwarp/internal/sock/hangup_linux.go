package sock

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// HangUps warns the receivers of a device that a stream has ended or that a socket has
// failed. It has an epoll descriptor for that alone, which the kernel does not wake for
// octets, and a goroutine that waits for this descriptor in the network poller.
//
// So a receiver may wait after a read that got less than it asked for (dry), where it
// would need another one that gets nothing:
//
//   - Such a read has emptied the socket. The network poller reports octets that come
//     later. Of urgent data, which iWARP has none of, the read may leave some, which then
//     wait until the peer sends more.
//   - The end of the stream, or a reset, may have come before that read. The network poller reports
//     it once, maybe together with the octets that the read got. So HangUps says that it has
//     come (hung), and then interrupts the wait. A receiver that finds hung set reads until
//     nothing is left. One that does not is interrupted afterwards, in its wait or on
//     its way there, and then reads again. So no wait begins unseen.
//   - The goroutine that waits may also be a watcher. HangUps counts as a goroutine that sleeps
//     in another way (Need of [Right]), so the watcher gives the socket back when it leaves,
//     and the receiver's goroutine reads next.
type HangUps struct {
	mu     sync.Mutex // its holder takes no lock but those of links
	opened bool
	closed bool
	failed bool // the goroutine can't wait for the descriptor
	set    epollSet
	file   *os.File        // of the epoll descriptor
	raw    syscall.RawConn // of file
	gone   chan struct{}   // closed when the goroutine has gone
}

// Add has HangUps warn a receiver, and reports whether it will. If the descriptor can't be had,
// the receiver makes the read that gets nothing.
func (h *HangUps) Add(s Socket) (warned bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// The kernel adds errors, and the end of both directions.
	return !h.closed && !h.failed && (h.opened || h.open()) && h.set.add(s, unix.EPOLLRDHUP|unix.EPOLLONESHOT)
}

// open begins the work, and reports whether it could. mu is held.
func (h *HangUps) open() bool {
	if h.set.open() != nil {
		return false
	}
	_ = unix.SetNonblock(h.set.fd, true) // for the network poller
	file := os.NewFile(uintptr(h.set.fd), "hangups")
	raw, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return false
	}
	h.file, h.raw, h.gone, h.opened = file, raw, make(chan struct{}), true
	go h.run()
	return true
}

// run is the goroutine of HangUps.
func (h *HangUps) run() {
	defer close(h.gone)
	if h.raw.Read(h.warn) != nil {
		h.fail()
	}
}

// fail has all receivers read until nothing is left, since nobody warns them, unless Close has ended the
// wait.
func (h *HangUps) fail() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.failed = true
	for s := range h.set.numbers {
		s.Hang()
	}
}

// warn warns the receivers whose sockets the descriptor reports. It returns false to wait
// for more.
func (h *HangUps) warn(uintptr) (over bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for !h.closed {
		events, err := h.set.ready()
		if len(events) == 0 && err != unix.EINTR {
			return false
		}
		for i := range events {
			if s := h.set.sockets[events[i].Fd]; s != nil {
				s.Hang()
			}
		}
	}
	return true
}

// Remove undoes Add. No receiver is warned afterwards.
func (h *HangUps) Remove(s Socket) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.set.remove(s)
}

// Close ends the work, and waits for the goroutine.
func (h *HangUps) Close() {
	h.mu.Lock()
	opened := h.opened && !h.closed
	h.closed = true
	h.mu.Unlock()
	if opened {
		_ = h.file.Close()
		<-h.gone
	}
}
