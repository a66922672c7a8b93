// Package archive stores a directory tree in a block store, and checks what is stored.
//
// Save reads the files into blocks, and sets the root last, so a store has either the
// whole of a tree or the tree before it. Check reads all blocks back and compares them
// with what Save noted about the files.
//
// Both share the files out among several links, with one goroutine each. The blocks of
// a file go over one link, one after the other, so however large the file, it needs the
// memory of a few buffers.
package archive
