package identity

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// markOf describes a file so that its copies are described otherwise: by its inode and when
// that was made, on btrfs also by its subvolume, of which a snapshot has the same inodes. A
// file system that does not tell when is described by its device. names is how many names
// (hard links) the file has.
func markOf(path string) (mark string, names int, err error) {
	var st unix.Statx_t
	var volume unix.Statfs_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_NLINK|unix.STATX_BTIME, &st); err != nil {
		return "", 0, err
	}
	if err := unix.Statfs(path, &volume); err != nil {
		return "", 0, err
	}
	mark = fmt.Sprintf("inode %d", st.Ino)
	if st.Mask&unix.STATX_BTIME != 0 {
		mark += " of " + time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)).UTC().Format(time.RFC3339Nano)
	} else {
		mark += fmt.Sprintf(" of device %d:%d", st.Dev_major, st.Dev_minor)
	}
	if uint32(volume.Type) == unix.BTRFS_SUPER_MAGIC {
		mark += fmt.Sprintf(" in subvolume %x", volume.Fsid.Val)
	}
	return mark, int(st.Nlink), nil
}
