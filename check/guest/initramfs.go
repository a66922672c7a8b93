package guest

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed init.sh
var initScript []byte

// bootModules are the modules that reach the host's files, which hold all other
// modules.
var bootModules = []string{"virtio_pci", "9p", "9pnet_virtio"}

// job is one boot: what to run, and where.
type job struct {
	cfg    *Config
	kernel kernel
	tree   string
	tools  map[tool]string // their paths on the host, and so in the guest
	secret string          // the beginning of init's reports
	prog   string
	args   []string

	rate      int  // what the processor's counter counts in a millisecond; 0 is unknown
	slowClock bool // the guest reads the time from a device
}

// writeInitramfs writes the guest's first file system: busybox, the modules that
// the guest needs to reach the host's files, and the job.
func (j *job) writeInitramfs(ctx context.Context, w *bytes.Buffer) error {
	box, err := os.ReadFile(j.tools[busybox])
	if err != nil {
		return fmt.Errorf("guest: %w", err)
	}
	files, err := j.moduleFiles(ctx)
	if err != nil {
		return err
	}
	a := &archive{w: w}
	a.dir("bin")
	a.dir("modules")
	a.dir("job")
	a.file("bin/busybox", modeExec, box)
	a.file("init", modeExec, initScript)
	var list strings.Builder
	for i, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("guest: %w", err)
		}
		name := fmt.Sprintf("modules/%02d-%s", i, filepath.Base(file))
		a.file(name, modeFile, data)
		list.WriteString("/" + name + "\n")
	}
	a.file("job/modules", modeFile, []byte(list.String()))
	a.file("job/settings", modeFile, []byte(j.settings()))
	a.file("job/run", modeExec, []byte(j.script()))
	for i, dir := range j.cfg.Share {
		a.file("job/share"+strconv.Itoa(i), modeFile, []byte(dir))
	}
	return a.close()
}

// moduleFiles lists the files of the boot modules, each after those that it depends
// on.
func (j *job) moduleFiles(ctx context.Context) ([]string, error) {
	var files []string
	seen := map[string]bool{}
	for _, m := range bootModules {
		out, err := modprobe.output(ctx, "", "-C", os.DevNull, "-d", j.tree, "-S", j.kernel.name, "--show-depends", m)
		if err != nil {
			return nil, err
		}
		for _, f := range parseShowDepends(out) {
			if !seen[f] {
				seen[f] = true
				files = append(files, f)
			}
		}
	}
	return files, nil
}

// parseShowDepends reads from modprobe's output the files to insert. Modules that
// are built in have none.
func parseShowDepends(out []byte) []string {
	var files []string
	for line := range strings.Lines(string(out)) {
		if f, ok := strings.CutPrefix(line, "insmod "); ok {
			files = append(files, strings.TrimSpace(f))
		}
	}
	return files
}

// settings returns the variables of init.sh.
func (j *job) settings() string {
	var b strings.Builder
	shares := strings.TrimSpace(strings.Repeat("x ", len(j.cfg.Share)))
	for _, s := range [][2]string{
		{"SECRET", j.secret},
		{"KERNEL", j.kernel.name},
		{"MODULE_ROOT", j.tree},
		{"MODPROBE", j.tools[modprobe]},
		{"RDMA", j.tools[rdma]},
		{"ADDRESS", Address},
		{"ADDRESS6", Address6},
		{"HOST_ADDRESS", HostAddress},
		{"DEVICES", strings.Join(j.cfg.Devices, " ")},
		{"MODULES", strings.Join(j.cfg.modules(), " ")},
		{"SHARES", shares},
		{"BUSY", strconv.Itoa(j.cfg.Busy)},
	} {
		b.WriteString(s[0] + "=" + quote(s[1]) + "\n")
	}
	return b.String()
}

// script returns the shell script that runs the program in the chroot.
func (j *job) script() string {
	var b strings.Builder
	b.WriteString("export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n")
	b.WriteString("export HOME=/run/home TMPDIR=/run/tmp TERM=dumb\n")
	if len(j.cfg.Devices) > 0 {
		b.WriteString("export GODAT_GUEST_DEVICE=" + quote(j.cfg.Devices[0]) + "\n")
	}
	for _, e := range j.cfg.Env {
		name, value, _ := strings.Cut(e, "=")
		b.WriteString("export " + name + "=" + quote(value) + "\n")
	}
	b.WriteString("cd " + quote(j.cfg.Dir) + " || exit 125\nexec " + quote(j.prog))
	for _, a := range j.args {
		b.WriteString(" " + quote(a))
	}
	b.WriteString(" </dev/null\n")
	return b.String()
}

// quote quotes any string as one word of the shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// resolve returns a program's name as the guest needs it. A name with a slash is a
// path, and a relative path is relative to dir.
func resolve(dir, prog string) string {
	if !strings.Contains(prog, "/") || path.IsAbs(prog) {
		return prog
	}
	return filepath.Join(dir, prog)
}
