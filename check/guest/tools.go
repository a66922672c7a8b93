package guest

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// installHint ends every message about a missing program.
const installHint = "check/guest/install.sh installs all that the guest needs"

// tool is a program of the host, and the package that has it.
type tool struct{ name, pkg string }

var (
	qemu     = tool{"qemu-system-x86_64", "qemu-system-x86"}
	busybox  = tool{"busybox", "busybox-static"}
	modprobe = tool{"modprobe", "kmod"}
	depmod   = tool{"depmod", "kmod"}
	dpkgDeb  = tool{"dpkg-deb", "dpkg"}
	aptGet   = tool{"apt-get", "apt"}
	aptCache = tool{"apt-cache", "apt"}
	tarTool  = tool{"tar", "tar"}
	xz       = tool{"xz", "xz-utils"} // for tar
	makeTool = tool{"make", "make"}
	compiler = tool{"gcc-12", "gcc-12"}
	rdma     = tool{"rdma", "iproute2"}
)

// path finds the program, in PATH or in the directories of programs for root.
func (t tool) path() (string, error) {
	if p, err := exec.LookPath(t.name); err == nil {
		return p, nil
	}
	for _, dir := range []string{"/usr/sbin/", "/sbin/"} {
		if p, err := exec.LookPath(dir + t.name); err == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("guest: %s is missing: install the package %s (%s)", t.name, t.pkg, installHint)
}

// find returns the paths of several programs; its error names all that are missing.
func find(tools ...tool) (map[tool]string, error) {
	paths := make(map[tool]string, len(tools))
	var errs []error
	for _, t := range tools {
		p, err := t.path()
		paths[t] = p
		errs = append(errs, err)
	}
	return paths, errors.Join(errs...)
}

// output runs a program of the host and returns its output. dir may be empty.
func (t tool) output(ctx context.Context, dir string, args ...string) ([]byte, error) {
	p, err := t.path()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, p, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("guest: %s %s: %w", t.name, strings.Join(args, " "),
			&complaintError{err, strings.TrimSpace(complaint.String())})
	}
	return out, nil
}

// complaintError is the end of a program that failed, with what it wrote to standard error.
type complaintError struct {
	err  error
	text string
}

func (e *complaintError) Error() string { return e.err.Error() + ": " + e.text }
func (e *complaintError) Unwrap() error { return e.err }

// static returns an error unless the program is linked statically.
func static(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("guest: %w", err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("guest: %s needs libraries: install the package %s in its place (%s)",
				path, busybox.pkg, installHint)
		}
	}
	return nil
}
