//go:build unix

package main

import "syscall"

// stop stops a node's process, and goOn has it go on.
func (c *cluster) stop(id int) { c.signal(id, syscall.SIGSTOP) }
func (c *cluster) goOn(id int) { c.signal(id, syscall.SIGCONT) }
