//go:build !unix

package main

// stop would stop a node's process, and goOn have it go on: here no signal does that.
func (c *cluster) stop(int) { c.Skip("capability: a process that is stopped") }
func (c *cluster) goOn(int) {}
