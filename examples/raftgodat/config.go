package raftgodat

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// Config says how a transport works. Zero values take the defaults.
type Config struct {
	// Advertise is the address that other nodes know this one by; the default is that on which it
	// listens.
	Advertise raft.ServerAddress
	// Timeout bounds an attempt to connect, a request, and each chunk of a snapshot; default 10 s.
	Timeout time.Duration
	// Pipeline is the most requests of a pipeline under way at a time; default 2, at most 16.
	Pipeline int
	// Largest is the most bytes of a request that this node takes; default 128 MiB. Raft makes
	// requests of up to raft.Config.MaxAppendEntries entries.
	Largest int
	// Peers is the most connections to this node at a time; default 64. A peer has two, and one for
	// each pipeline.
	Peers int
}

const (
	mostPipeline = 16
	message      = 16 << 10 // bytes of a request or an answer inside a message
	chunk        = 1 << 20  // bytes of a snapshot in a request
	restoreUnit  = 256 << 10
)

// complete fills in the defaults and checks the rest.
func (cfg *Config) complete() error {
	cfg.Timeout = cmp.Or(cfg.Timeout, 10*time.Second)
	cfg.Pipeline = cmp.Or(cfg.Pipeline, 2)
	cfg.Largest = cmp.Or(cfg.Largest, 128<<20)
	cfg.Peers = cmp.Or(cfg.Peers, 64)
	switch {
	case cfg.Timeout < time.Millisecond:
		return fmt.Errorf("raftgodat: Config.Timeout is %v", cfg.Timeout)
	case cfg.Pipeline < 1 || cfg.Pipeline > mostPipeline:
		return fmt.Errorf("raftgodat: Config.Pipeline is %d; it may be 1 to %d", cfg.Pipeline, mostPipeline)
	case cfg.Largest < chunk:
		return fmt.Errorf("raftgodat: Config.Largest is %d; it must be %d at least", cfg.Largest, chunk)
	case cfg.Peers < 1:
		return errors.New("raftgodat: Config.Peers is negative")
	}
	return nil
}
