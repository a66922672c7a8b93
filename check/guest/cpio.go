package guest

import (
	"fmt"
	"io"
)

// archive writes an initramfs: a cpio archive in the format that the kernel calls
// newc. It keeps the first error, and close returns it.
type archive struct {
	w     io.Writer
	inode int
	err   error
}

// The file types and permissions of the entries.
const (
	modeDir  = 0o040755
	modeFile = 0o100644
	modeExec = 0o100755
	modeLink = 0o120777
)

const (
	trailer   = "TRAILER!!!"
	alignment = 4
)

func (a *archive) dir(name string)                         { a.entry(name, modeDir, nil) }
func (a *archive) file(name string, mode int, data []byte) { a.entry(name, mode, data) }
func (a *archive) link(name, target string)                { a.entry(name, modeLink, []byte(target)) }

func (a *archive) close() error {
	a.entry(trailer, 0, nil)
	return a.err
}

// entry writes one member. The header with the name, and the data, each begin at a
// multiple of four bytes. All numbers are eight hexadecimal digits.
func (a *archive) entry(name string, mode int, data []byte) {
	a.inode++
	links := 1
	if mode == modeDir {
		links = 2
	}
	const owner, group, mtime, major, minor, rmajor, rminor, check = 0, 0, 0, 0, 0, 0, 0, 0
	header := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		a.inode, mode, owner, group, links, mtime, len(data), major, minor, rmajor, rminor, len(name)+1, check)
	a.padded([]byte(header + name + "\x00"))
	a.padded(data)
}

func (a *archive) padded(b []byte) {
	a.write(b)
	if over := len(b) % alignment; over != 0 {
		a.write(make([]byte, alignment-over))
	}
}

func (a *archive) write(b []byte) {
	if a.err == nil {
		_, a.err = a.w.Write(b)
	}
}
