// Package soft is the part that devices made of software have in common: the counts
// of the objects open on a device, its zones, the table of the keys of its regions
// and windows, and shared receive queues. A provider embeds a [Device] in its own,
// and looks keys up on its data path by itself.
//
// The package needs one thing from the provider: which accesses are in progress
// ([Accessor]), so that a goroutine can wait until none uses a key that has just died.
package soft
