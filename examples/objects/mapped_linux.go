package main

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	dat "godat/runtime"
)

// mapped maps n bytes of a file and registers them, for the time of a call of do, which gets
// the region and where in it the bytes are. The file must not become shorter meanwhile: an
// access behind its end is a fault, which ends the process. So is an access that its disk
// can't serve.
func mapped(pz *dat.PZ, f *os.File, offset int64, n int, rights dat.Privileges, do func(m *dat.LMR, at int) error) error {
	if n == 0 {
		return do(nil, 0)
	}
	protection := unix.PROT_READ
	if rights&(dat.LocalWrite|dat.RemoteWrite) != 0 {
		protection |= unix.PROT_WRITE
	}
	at := int(offset % int64(os.Getpagesize()))
	memory, err := unix.Mmap(int(f.Fd()), offset-int64(at), at+n, protection, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	region, err := pz.Register(memory, rights)
	if err == nil {
		err = errors.Join(do(region, at), region.Free())
	}
	return errors.Join(err, unix.Munmap(memory))
}

// allocate makes an empty file n bytes long, and takes room for them on the disk, so that
// writing to the mapped file can't fail for want of room.
func allocate(f *os.File, n int) error {
	if n == 0 {
		return nil
	}
	return unix.Fallocate(int(f.Fd()), 0, 0, int64(n))
}

// syncDir waits until the disk has the names in a directory.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
