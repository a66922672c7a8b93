package usage

import (
	"errors"
	"strings"
)

// Reaches refuses the provider loop to a program whose peers are other processes.
func Reaches(provider string) error {
	if name, _, _ := strings.Cut(provider, ":"); name == "loop" {
		return errors.New("--provider loop is memory of one process, and reaches no other one; iwarp does, on any machine")
	}
	return nil
}
