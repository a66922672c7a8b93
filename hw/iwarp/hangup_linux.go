package iwarp

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// hangups warns the receivers of a device that a stream has ended or that a socket has
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
//     it once, maybe together with the octets that the read got. So hangups says that it has
//     come (hung), and then interrupts the wait. A receiver that finds hung set reads until
//     nothing is left. One that does not is interrupted afterwards, in its wait or on
//     its way there, and then reads again. So no wait begins unseen.
//   - The goroutine that waits may also be a watcher. hangups counts as a goroutine that sleeps
//     in another way (watch.needs), so the watcher gives the socket back when it leaves,
//     and the receiver's goroutine reads next.
type hangups struct {
	mu     sync.Mutex // its holder takes no lock but those of links
	opened bool
	closed bool
	epoll  int
	file   *os.File
	raw    syscall.RawConn // of file
	gone   chan struct{}   // closed when the goroutine has gone
	// The receivers of the sockets, by the number in their events.
	receivers []*receiver
	free      []int32
	events    [pollSockets]unix.EpollEvent
}

// add has hangups warn a receiver. If the descriptor can't be had, the receiver makes the
// read that gets nothing.
func (h *hangups) add(r *receiver) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.staged() || h.closed || !h.opened && !h.open() {
		return
	}
	i := int32(len(h.receivers))
	if k := len(h.free); k > 0 {
		i = h.free[k-1]
	}
	// The kernel adds errors, and the end of both directions.
	err := h.control(r, unix.EPOLL_CTL_ADD, &unix.EpollEvent{Events: unix.EPOLLRDHUP | unix.EPOLLONESHOT, Fd: i})
	switch {
	case err != nil:
		return
	case i == int32(len(h.receivers)):
		h.receivers = append(h.receivers, r)
	default:
		h.free = h.free[:len(h.free)-1]
		h.receivers[i] = r
	}
	r.warned, r.number = true, i
}

// open begins the work, and reports whether it could. mu is held.
func (h *hangups) open() bool {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return false
	}
	_ = unix.SetNonblock(fd, true) // for the network poller
	file := os.NewFile(uintptr(fd), "hangups")
	raw, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return false
	}
	h.epoll, h.file, h.raw, h.gone, h.opened = fd, file, raw, make(chan struct{}), true
	go h.run()
	return true
}

// run is the goroutine of hangups.
func (h *hangups) run() {
	defer close(h.gone)
	_ = h.raw.Read(h.warn)
}

// warn warns the receivers whose sockets the descriptor reports. It returns false to wait
// for more.
func (h *hangups) warn(uintptr) (over bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for !h.closed {
		n, err := unix.EpollWait(h.epoll, h.events[:], 0)
		if n <= 0 && err != unix.EINTR {
			return false
		}
		for i := range max(n, 0) {
			h.receivers[h.events[i].Fd].hang()
		}
	}
	return true
}

// remove undoes add. No receiver is warned afterwards.
func (h *hangups) remove(r *receiver) {
	if !r.warned {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r.warned = false
	_ = h.control(r, unix.EPOLL_CTL_DEL, nil)
	h.receivers[r.number] = nil
	h.free = append(h.free, r.number)
}

func (h *hangups) control(r *receiver, op int, ev *unix.EpollEvent) error {
	var err error
	if e := r.port.raw.Control(func(fd uintptr) { err = unix.EpollCtl(h.epoll, op, int(fd), ev) }); e != nil {
		return e
	}
	return err
}

// close ends the work, and waits for the goroutine.
func (h *hangups) close() {
	h.mu.Lock()
	opened := h.opened && !h.closed
	h.closed = true
	h.mu.Unlock()
	if opened {
		_ = h.file.Close()
		<-h.gone
	}
}
