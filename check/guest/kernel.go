package guest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// recipe is the version of a tree's contents. Each change of the contents counts it
// up, which makes older trees stale.
const recipe = 1

// kernel is a version of the distribution's kernel.
type kernel struct {
	name    string // 6.1.0-56-amd64; a new binary interface changes it
	version string // 6.1.192-2, the version of the package
	series  string // 6.1, which names the source package
}

const (
	imagePrefix = "linux-image-"
	metaPackage = "linux-image-amd64"
)

// key is the tree's name in the cache.
func (k kernel) key() string { return fmt.Sprintf("%s_%s_%d", k.name, k.version, recipe) }

// currentKernel asks the package manager for the distribution's current kernel.
func currentKernel(ctx context.Context) (kernel, error) {
	out, err := aptCache.output(ctx, "", "depends", metaPackage)
	if err != nil {
		return kernel{}, err
	}
	name, err := field(out, "Depends: "+imagePrefix)
	if err != nil {
		return kernel{}, err
	}
	if out, err = aptCache.output(ctx, "", "show", "--no-all-versions", imagePrefix+name); err != nil {
		return kernel{}, err
	}
	version, err := field(out, "Version: ")
	if err != nil {
		return kernel{}, err
	}
	series := strings.SplitN(name, ".", 3)
	if len(series) < 3 {
		return kernel{}, fmt.Errorf("guest: strange kernel version %q", name)
	}
	return kernel{name, version, series[0] + "." + series[1]}, nil
}

// field returns what follows a prefix in the package manager's answer about the
// distribution's kernel.
func field(out []byte, prefix string) (string, error) {
	for line := range strings.Lines(string(out)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), prefix); ok {
			return value, nil
		}
	}
	return "", fmt.Errorf("guest: the package manager knows no kernel (no %q of %s): run apt-get update", prefix, metaPackage)
}

// download fetches a package of the distribution into dir, without installing it,
// and returns the path of its file.
func download(ctx context.Context, dir, pkg, version string) (string, error) {
	if _, err := aptGet.output(ctx, dir, "download", "-qq", pkg+"="+version); err != nil {
		return "", err
	}
	found, err := filepath.Glob(filepath.Join(dir, pkg+"_*.deb"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("guest: apt-get download %s left %d files", pkg, len(found))
	}
	return found[0], nil
}

// buildTree fills dir with a kernel and its modules, siw among them.
func buildTree(ctx context.Context, k kernel, dir string, progress io.Writer) error {
	if _, err := find(aptGet, dpkgDeb, depmod, tarTool, xz, makeTool, compiler); err != nil {
		return err
	}
	scratch := filepath.Join(dir, "scratch")
	if err := os.Mkdir(scratch, 0o755); err != nil {
		return fmt.Errorf("guest: cache: %w", err)
	}
	fmt.Fprintf(progress, "guest: fetching the kernel %s (%s)\n", k.name, k.version)
	image, err := download(ctx, scratch, imagePrefix+k.name, k.version)
	if err != nil {
		return err
	}
	unpacked := filepath.Join(scratch, "image")
	if err := unpackPackage(ctx, image, unpacked); err != nil {
		return err
	}
	if err := keepKernel(unpacked, dir, k.name); err != nil {
		return err
	}
	fmt.Fprintf(progress, "guest: building siw from the kernel's source\n")
	if err := buildSiw(ctx, k, scratch, filepath.Join(dir, moduleDir(k.name), "extra")); err != nil {
		return err
	}
	if _, err := depmod.output(ctx, "", "-b", dir, k.name); err != nil {
		return err
	}
	return os.RemoveAll(scratch)
}

func moduleDir(kernel string) string { return "lib/modules/" + kernel }

func kernelImage(tree, kernel string) string { return filepath.Join(tree, "boot", "vmlinuz-"+kernel) }

// unwanted are the directories of modules that no test in a guest needs: three
// quarters of a kernel.
var unwanted = []string{
	"sound", "drivers/gpu", "drivers/media", "drivers/hid", "drivers/hwmon", "drivers/staging", "drivers/comedi",
	"drivers/iio", "drivers/usb", "drivers/platform", "drivers/input", "drivers/ata", "drivers/scsi", "drivers/mtd",
	"drivers/net/wireless", "drivers/net/ethernet", "drivers/net/usb", "drivers/infiniband/hw", "drivers/isdn",
	"net/bluetooth", "net/wireless", "net/mac80211", "arch/x86/kvm",
}

// keepKernel moves what a tree keeps of the kernel's package, which is unpacked in from,
// to dir.
func keepKernel(from, dir, name string) error {
	for _, modules := range unwanted {
		if err := os.RemoveAll(filepath.Join(from, moduleDir(name), "kernel", modules)); err != nil {
			return fmt.Errorf("guest: cache: %w", err)
		}
	}
	for _, wanted := range []string{kernelImage("", name), moduleDir(name)} {
		err := os.MkdirAll(filepath.Join(dir, filepath.Dir(wanted)), 0o755)
		if err == nil {
			err = os.Rename(filepath.Join(from, wanted), filepath.Join(dir, wanted))
		}
		if err != nil {
			return fmt.Errorf("guest: the kernel's package: %w", err)
		}
	}
	return nil
}

// unpackPackage unpacks a package into dir, without installing it.
func unpackPackage(ctx context.Context, file, dir string) error {
	_, err := dpkgDeb.output(ctx, "", "-x", file, dir)
	return err
}
