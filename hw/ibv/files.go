//go:build linux && cgo

package ibv

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"godat/hw"
)

const (
	// folder has the files by which processes reach devices.
	folder = "/dev/infiniband/"
	// cmFile is the file through which librdmacm talks to the kernel.
	cmFile = folder + "rdma_cm"

	inContainer = "in a container, --device /dev/infiniband"
	giveAccess  = "give this user access to /dev/infiniband/*, as rdma-core's rules of udev do; " + inContainer
)

// noFile is the error of a file that is missing.
func noFile(file string) error {
	return hw.Errorf(opOpen, hw.ProviderNotFound, hw.NameNotRegistered,
		"%s is missing: load the kernel modules (modprobe -a ib_uverbs rdma_ucm) and the one of the device; %s", file, inContainer)
}

// tryFile opens a file as the libraries do, and closes it.
func tryFile(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// closedFile finds out whether a device does not open because one of its files doesn't, as try says;
// else it is nil. The libraries look for a file that is closed to them elsewhere, and then say that there is
// none.
func closedFile(device string, try func(file string) error, files ...string) error {
	for _, file := range files {
		if err := try(file); errors.Is(err, fs.ErrNotExist) {
			return noFile(file)
		} else if err != nil {
			return openError(device, err)
		}
	}
	return nil
}

// unlisted finds out whether the kernel has the device, or any if the name is empty, and the library does not list
// it, since its file is missing; else it is nil. class is /sys/class.
func unlisted(class fs.FS, device string) error {
	devices, _ := fs.Glob(class, "infiniband/*")
	if len(devices) == 0 || device != "" && !slices.Contains(devices, "infiniband/"+device) {
		return nil
	}
	if device == "" {
		device = path.Base(devices[0])
	}
	files, _ := fs.Glob(class, "infiniband_verbs/uverbs*/ibdev")
	for _, f := range files {
		if name, err := fs.ReadFile(class, f); err == nil && strings.TrimSpace(string(name)) == device {
			return noFile(folder + path.Base(path.Dir(f)))
		}
	}
	return hw.Errorf(opOpen, hw.ProviderNotFound, hw.NameNotRegistered, "the kernel has no file for %s: modprobe ib_uverbs", device)
}
