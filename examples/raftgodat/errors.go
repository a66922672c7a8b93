package raftgodat

import (
	"errors"

	"godat/runtime/rpc"
)

// EngineError is an error that the raft of the target answered. The request came there, and an
// answer came back.
type EngineError struct{ Text string }

func (e *EngineError) Error() string { return "raft of the target: " + e.Text }

// ErrNoAnswer is matched by the error of a request that came to the target, and that its raft does not
// answer: it was shut down, or is slower than Config.Timeout.
var ErrNoAnswer = errors.New("raftgodat: the raft of the target does not answer")

// Codes of failures.
const (
	codeEngine   = rpc.CodeUser + iota // the text is raft's
	codeNoAnswer                       // raft has not answered
)

// explain makes an error of a call one of this package's.
func explain(err error) error {
	var failed *rpc.Error
	switch {
	case !errors.As(err, &failed):
		return err
	case failed.Code == codeEngine:
		return &EngineError{failed.Text}
	case failed.Code == codeNoAnswer:
		return ErrNoAnswer
	}
	return err
}
