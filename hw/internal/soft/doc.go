// Package soft is what devices made of software have in common: the objects that
// are open on one and how many, zones, regions and windows in the table of their
// keys, and shared receive queues. A provider embeds a [Device] in its own, and
// looks keys up on its data path by itself.
//
// The one thing that it has to know of the provider is how to wait until nobody
// uses a key that has just died: [Config.Grace].
package soft
