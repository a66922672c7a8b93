package iwarp

import "golang.org/x/sys/unix"

// epollSet is an epoll descriptor and the receivers whose sockets it reports, by the number in
// their events. A number is used again: an event from before then names another receiver, or none.
// The set's owner has a lock for it.
type epollSet struct {
	fd        int
	receivers []*receiver
	free      []int32 // numbers without a receiver
	events    [pollSockets]unix.EpollEvent
}

// open makes the descriptor, which the owner closes.
func (s *epollSet) open() (err error) {
	s.fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	return err
}

// empty reports whether there is no receiver.
func (s *epollSet) empty() bool { return len(s.receivers) == len(s.free) }

// add has the descriptor report a receiver's socket on events, and returns its number.
func (s *epollSet) add(r *receiver, events uint32) (number int32, err error) {
	number = int32(len(s.receivers))
	if k := len(s.free); k > 0 {
		number = s.free[k-1]
	}
	if err := s.control(r, unix.EPOLL_CTL_ADD, &unix.EpollEvent{Events: events, Fd: number}); err != nil {
		return 0, err
	}
	if k := len(s.free); k > 0 {
		s.free = s.free[:k-1]
		s.receivers[number] = r
	} else {
		s.receivers = append(s.receivers, r)
	}
	return number, nil
}

// remove undoes add. It can't for a socket that is being closed, which the descriptor reports until
// the last goroutine that uses the socket has let it go.
func (s *epollSet) remove(r *receiver, number int32) {
	_ = s.control(r, unix.EPOLL_CTL_DEL, nil)
	s.receivers[number] = nil
	s.free = append(s.free, number)
}

func (s *epollSet) control(r *receiver, op int, event *unix.EpollEvent) error {
	var err error
	if e := r.port.raw.Control(func(fd uintptr) { err = unix.EpollCtl(s.fd, op, int(fd), event) }); e != nil {
		return e
	}
	return err
}

// ready returns the events that have come. They are good until the next call.
func (s *epollSet) ready() ([]unix.EpollEvent, error) {
	n, err := unix.EpollWait(s.fd, s.events[:], 0)
	return s.events[:max(n, 0)], err
}
