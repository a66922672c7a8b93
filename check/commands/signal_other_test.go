//go:build !unix

package commands

import "os"

func terminate(p *os.Process) error { return p.Kill() }
