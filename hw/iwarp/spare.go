package iwarp

import (
	"errors"
	"os"
	"syscall"
)

// spare is a descriptor that a listener keeps for the time when its process, or the
// system, has no other left. A listener without one could not accept, so it could not
// refuse a peer either: the peer would wait in the system's queue and learn nothing.
type spare struct{ file *os.File }

// take makes sure that there is a spare descriptor. Its error may match isScarce.
func (s *spare) take() (err error) {
	if s.file == nil {
		s.file, err = os.Open(os.DevNull)
	}
	return err
}

// held reports whether there is a spare descriptor.
func (s *spare) held() bool { return s.file != nil }

// give frees the descriptor, if there is one.
func (s *spare) give() {
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}

// isScarce reports whether a call failed for want of a descriptor.
func isScarce(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
