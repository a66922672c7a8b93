// Package tree is what the block store knows of a directory tree: the files in
// it, and the manifest, which says what each of them was made of.
//
// The manifest is stored in blocks like any file. The names of its blocks are
// in one more block, the root, from which everything else is found.
package tree
