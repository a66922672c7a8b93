package sock

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// netpoll makes Go's scheduler poll the network. The scheduler does so when a processor
// has nothing to run, and a goroutine that polls without sleeping leaves it no such
// moment, even if it yields: then only the runtime's monitor polls the network, up to
// 10 ms late. So now and then a polling goroutine parks in the network poller, on an
// eventfd that it has just written. It runs again as soon as the scheduler has polled the
// network, about a microsecond later if nothing else can run.
//
// There is one for all devices, because they share the scheduler: as long as a consumer of
// any of them is runnable, the processor does not run out of goroutines.
type netpoll struct {
	mu     sync.Mutex  // held while a goroutine parks
	parked atomic.Bool // mu is held by run
	parkF  func(fd uintptr) bool
	woken  bool   // in parkF
	one    uint64 // what is written; never changes
	users  int    // devices whose consumers poll
	file   *os.File
	raw    syscall.RawConn // of file, an eventfd; nil without users
}

// network is the process's.
var network netpoll

// open adds a device. The first one opens the eventfd.
func (n *netpoll) open() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.users > 0 {
		n.users++
		return nil
	}
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	file := os.NewFile(uintptr(fd), "eventfd")
	raw, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return fmt.Errorf("eventfd in the network poller: %w", err)
	}
	n.one, n.parkF, n.file, n.raw, n.users = 1, n.park, file, raw, 1
	return nil
}

// close removes a device. The last one closes the eventfd. It waits for a goroutine that
// is parked, until the scheduler polls the network.
func (n *netpoll) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.users--; n.users == 0 {
		_ = n.file.Close()
		n.file, n.raw = nil, nil
	}
}

// run returns when the scheduler has polled the network.
func (n *netpoll) run() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.raw == nil {
		return // the last device closed meanwhile
	}
	n.parked.Store(true)
	n.woken = false
	_ = n.raw.Read(n.parkF)
	n.parked.Store(false)
}

// join waits if another goroutine is parked in run. All that poll have to park, or the
// scheduler runs the others first.
func (n *netpoll) join() {
	if n.parked.Load() {
		n.mu.Lock()
		defer n.mu.Unlock()
	}
}

// park writes the eventfd, and returns false once, upon which its caller parks. The
// eventfd is never read: each write makes epoll report it again, and its counter can't
// get full.
func (n *netpoll) park(fd uintptr) bool {
	if n.woken {
		return true
	}
	n.woken = true
	_, _, errno := unix.RawSyscall(unix.SYS_WRITE, fd, uintptr(unsafe.Pointer(&n.one)), 8)
	return errno != 0
}
