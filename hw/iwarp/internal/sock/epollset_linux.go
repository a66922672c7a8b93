package sock

import (
	"cmp"

	"golang.org/x/sys/unix"
)

// epollSet is an epoll descriptor and the sockets that it reports, by the number in their events.
// A number is used again: an event from before then names another socket, or none.
// The set's owner has a lock for it.
type epollSet struct {
	fd      int
	sockets []Socket
	numbers map[Socket]int32
	free    []int32 // numbers without a socket
	events  [pollSockets]unix.EpollEvent
}

// open makes the descriptor, which the owner closes.
func (s *epollSet) open() (err error) {
	s.numbers = make(map[Socket]int32)
	s.fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	return err
}

// add has the descriptor report a socket on events, and reports whether it does.
func (s *epollSet) add(socket Socket, events uint32) bool {
	k := len(s.free)
	if k == 0 {
		s.free, s.sockets, k = append(s.free, int32(len(s.sockets))), append(s.sockets, nil), 1
	}
	number := s.free[k-1]
	if s.control(socket, unix.EPOLL_CTL_ADD, &unix.EpollEvent{Events: events, Fd: number}) != nil {
		return false
	}
	s.free, s.sockets[number], s.numbers[socket] = s.free[:k-1], socket, number
	return true
}

// remove undoes add. It can't for a socket that is being closed, which the descriptor reports until
// the last goroutine that uses the socket has let it go.
func (s *epollSet) remove(socket Socket) {
	if number, in := s.numbers[socket]; in {
		_ = s.control(socket, unix.EPOLL_CTL_DEL, nil)
		delete(s.numbers, socket)
		s.sockets[number], s.free = nil, append(s.free, number)
	}
}

func (s *epollSet) control(socket Socket, op int, event *unix.EpollEvent) (err error) {
	closed := socket.Control(func(fd uintptr) { err = unix.EpollCtl(s.fd, op, int(fd), event) })
	return cmp.Or(closed, err)
}

// ready returns the events that have come. They are good until the next call.
func (s *epollSet) ready() ([]unix.EpollEvent, error) {
	n, err := unix.EpollWait(s.fd, s.events[:], 0)
	return s.events[:max(n, 0)], err
}
