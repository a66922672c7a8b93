package guest

import (
	"fmt"
	"strconv"
	"strings"
)

// arguments are QEMU's. The processor is always emulated: where /dev/kvm is
// there it may still hang. A fault of the kernel's ends the machine: then the
// program's output stops there, and the report of it is the console's last word. On a
// busy host the kernel would find that its timer does not work, and is told not to
// look.
func (j *job) arguments(initrd, log string) []string {
	c := j.cfg
	args := []string{
		"-accel", "tcg,thread=multi", "-cpu", "max",
		"-smp", strconv.Itoa(c.CPUs), "-m", strconv.Itoa(c.Memory),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", kernelImage(j.tree, j.kernel.name), "-initrd", initrd,
		"-append", "console=ttyS0 panic=-1 oops=panic quiet mitigations=off no_timer_check " + c.Kernel,
		"-serial", "file:" + escape(log), // the kernel's messages and init's
		"-serial", "stdio", // the program, and init's reports
		"-nic", nic(c.Forward),
	}
	args = append(args, share("host", "/", "on")...)
	for i, dir := range c.Share {
		args = append(args, share("share"+strconv.Itoa(i), dir, "off")...)
	}
	return args
}

func nic(forward []Forward) string {
	var b strings.Builder
	b.WriteString("user,model=virtio-net-pci")
	for _, f := range forward {
		fmt.Fprintf(&b, ",hostfwd=tcp:127.0.0.1:%d-:%d", f.Host, f.Guest)
	}
	return b.String()
}

// share offers a directory of the host. Other file systems mounted inside it
// need multidevs=remap.
func share(tag, dir, readonly string) []string {
	return []string{
		"-fsdev", fmt.Sprintf("local,id=%s,path=%s,security_model=none,readonly=%s,multidevs=remap", tag, escape(dir), readonly),
		"-device", fmt.Sprintf("virtio-9p-pci,fsdev=%s,mount_tag=%s", tag, tag),
	}
}

// escape makes a value of one of QEMU's options out of a path.
func escape(s string) string { return strings.ReplaceAll(s, ",", ",,") }
