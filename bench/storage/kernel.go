package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// What Linux's target needs: its modules, and a disk of the module null_blk that keeps what is written,
// whose statistics prove which target answered.
const (
	kernelTarget = "/sys/kernel/config/nvmet"
	kernelDisk   = "nullb0"
	kernelPort   = "4421"
)

// kernelServer is Linux's own target, nvmet-rdma, as its files in configfs set it up.
type kernelServer struct{ addr string }

// The directories of its subsystem, of the disk in it, and of its port.
var (
	kernelSubsystem = filepath.Join(kernelTarget, "subsystems", subsystem)
	kernelNamespace = filepath.Join(kernelSubsystem, "namespaces", "1")
	kernelAt        = filepath.Join(kernelTarget, "ports", "1")
	kernelLink      = filepath.Join(kernelAt, "subsystems", subsystem)
)

// serveKernel has Linux serve the same blocks as newStore makes.
func serveKernel(host string) (_ *kernelServer, err error) {
	s := &kernelServer{net.JoinHostPort(host, kernelPort)}
	_ = s.close() // what an end that was killed has left
	if err := fillDisk(filepath.Join("/dev", kernelDisk)); err != nil {
		return nil, fmt.Errorf("nvmet-rdma needs the disk %s: %w", kernelDisk, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("nvmet-rdma: %w", err), s.close())
		}
	}()
	for _, dir := range []string{kernelSubsystem, kernelNamespace, kernelAt} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
	}
	for _, file := range [][2]string{
		{filepath.Join(kernelSubsystem, "attr_allow_any_host"), "1"},
		{filepath.Join(kernelNamespace, "device_path"), filepath.Join("/dev", kernelDisk)},
		{filepath.Join(kernelNamespace, "enable"), "1"},
		{filepath.Join(kernelAt, "addr_trtype"), "rdma"},
		{filepath.Join(kernelAt, "addr_adrfam"), "ipv4"},
		{filepath.Join(kernelAt, "addr_traddr"), host},
		{filepath.Join(kernelAt, "addr_trsvcid"), kernelPort},
	} {
		if err := os.WriteFile(file[0], []byte(file[1]), 0); err != nil {
			return nil, err
		}
	}
	return s, os.Symlink(kernelSubsystem, kernelLink)
}

func fillDisk(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	all := make([]byte, blocks*size)
	for i := range blocks {
		binary.LittleEndian.PutUint64(all[i*size:], uint64(i))
	}
	_, err = f.Write(all)
	return errors.Join(err, f.Sync(), f.Close())
}

// served is how many reads and writes of a block the disk has answered; negative if that is unknown.
func (*kernelServer) served() (n int64) {
	text, _ := os.ReadFile(filepath.Join("/sys/block", kernelDisk, "stat"))
	fields := strings.Fields(string(text))
	if len(fields) < 6 {
		return -1
	}
	for _, i := range []int{0, 1, 4, 5} { // reads, reads merged into them, and the same of writes
		count, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return -1
		}
		n += count
	}
	return n
}

func (*kernelServer) close() error {
	return errors.Join(os.Remove(kernelLink), os.Remove(kernelAt), os.Remove(kernelNamespace), os.Remove(kernelSubsystem))
}
