//go:build !linux

package process

// takeSystem adds nothing: the system's numbers are for its own tools.
func (p *Info) takeSystem() {}
