// Package tree describes a directory tree to the block store: the files in it, and the
// manifest, which says of which blocks each file is made.
//
// The manifest is stored in blocks like any file. One more block, the root, names the
// manifest's blocks; everything is found from there.
package tree
