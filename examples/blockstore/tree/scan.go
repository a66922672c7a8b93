package tree

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Found is a file that Scan found.
type Found struct {
	Path string // from the tree's top, with slashes
	Size int64  // bytes, at the time of the scan
}

// Scan lists the regular files under dir in the order of their names, and counts what
// it skips: links, sockets and the like.
func Scan(dir string) (files []Found, passed int, err error) {
	// dir may itself be a link.
	top, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, 0, fmt.Errorf("tree: %w", err)
	}
	err = fs.WalkDir(os.DirFS(top), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			passed++
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files = append(files, Found{Path: path, Size: info.Size()})
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("tree: %s: %w", dir, err)
	}
	return files, passed, nil
}
