//go:build unix

package main

import "syscall"

// space is how many bytes a program may still write on the file system of dir.
func space(dir string) (uint64, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return fs.Bavail * uint64(fs.Bsize), nil
}
