// Package archive keeps a directory tree in a block store, and checks what is
// kept.
//
// Save reads the files into blocks, and ends by setting the root; so a store
// has the whole of a tree, or the one before it. Check reads all blocks back
// and compares them with what Save wrote down of the files.
//
// Both share the files out among several links, one goroutine each. A file's
// blocks go over one link, one after the other, so a few buffers are all the
// memory that it takes, however large the file.
package archive
