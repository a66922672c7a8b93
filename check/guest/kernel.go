package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// recipe is the version of a tree's contents. Each change of the contents counts it
// up, which makes older trees stale.
const recipe = 2

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

// kernels returns the kernels of the distribution that the lists have: first the current
// one, then those that may serve when it can't be had.
func (l lists) kernels(ctx context.Context) ([]kernel, error) {
	metas, err := l.releases(ctx, metaPackage)
	if err != nil {
		return nil, err
	}
	metas = preferredFirst(metas, l.preferred(ctx, metaPackage))
	var all []kernel
	for _, meta := range metas {
		for _, pkg := range meta.depends {
			name, ok := strings.CutPrefix(pkg, imagePrefix)
			series := strings.SplitN(name, ".", 3)
			if !ok || len(series) < 3 {
				continue
			}
			images, err := l.releases(ctx, pkg)
			if err != nil {
				return nil, err
			}
			for _, image := range images {
				all = append(all, kernel{name, image.version, series[0] + "." + series[1]})
			}
		}
	}
	if len(all) == 0 {
		return nil, &missingError{pkg: metaPackage + ", or a kernel that it names,"}
	}
	return all, nil
}

func preferredFirst(all []release, version string) []release {
	isPreferred := func(r release) bool { return r.version == version }
	i := slices.IndexFunc(all, isPreferred)
	if i < 0 {
		return all
	}
	return append([]release{all[i]}, slices.Delete(slices.Clone(all), i, i+1)...)
}

// acquire returns a kernel and its tree in the cache, and a function that ends the tree's
// use. It takes the kernel that the host's package lists name. If an archive no longer has
// what they name, acquire asks newer lists, and takes the first kernel of which all parts
// can be had.
func acquire(ctx context.Context, store cache, progress io.Writer) (k kernel, tree string, done func(), err error) {
	store.progress = progress
	use := func(l lists, k kernel) error {
		tree, done, err = store.acquire(ctx, k.key(), func(dir string) error { return l.buildTree(ctx, k, dir, progress) })
		return err
	}
	var host lists
	all, err := host.kernels(ctx)
	if err == nil {
		k = all[0]
		err = use(host, k)
	}
	old, gone := errors.AsType[*missingError](err)
	if !gone {
		return k, tree, done, err
	}
	fmt.Fprintf(progress, "guest: %v: asking newer package lists (apt-get update would spare that)\n", old)
	dir, err := os.MkdirTemp("", "godat-lists-")
	if err != nil {
		return k, "", nil, fmt.Errorf("guest: %w", err)
	}
	defer os.RemoveAll(dir)
	fresh, updateErr := newLists(ctx, dir)
	all, err = fresh.kernels(ctx)
	tried := []error{err}
	for _, k = range all {
		if err = use(fresh, k); err == nil {
			return k, tree, done, nil
		}
		if _, gone = errors.AsType[*missingError](err); !gone {
			return k, "", nil, err
		}
		tried = append(tried, err)
	}
	if updateErr != nil {
		tried = append(tried, fmt.Errorf("the archives said %q", reason(updateErr)))
	}
	return k, "", nil, fmt.Errorf("guest: no kernel can be had: by the host's package lists, %w; by lists fetched now, %w", old, oneLine(tried))
}

// oneLine joins errors in one line.
func oneLine(errs []error) error {
	var all error
	for _, err := range errs {
		switch {
		case err == nil:
		case all == nil:
			all = err
		default:
			all = fmt.Errorf("%w; %w", all, err)
		}
	}
	return all
}

// parts are the packages that a tree is made of, and the files that hold them.
type parts struct {
	image, headers, common, kbuild, source string
	versions                               []string // "linux-kbuild-6.1 6.1.192-3", of all
}

// fetch downloads the parts of a kernel into dir. Only the image must have the kernel's
// version. The others come from the same sources but reach the archive, and leave it, at
// other times: any version serves whose name has the kernel's binary interface or series.
func (l lists) fetch(ctx context.Context, k kernel, dir string, progress io.Writer) (p parts, err error) {
	base := strings.TrimSuffix(k.name, "-amd64")
	for _, part := range []struct {
		file *string
		pkg  string
	}{
		{&p.headers, "linux-headers-" + k.name},
		{&p.common, "linux-headers-" + base + "-common"},
		{&p.kbuild, "linux-kbuild-" + k.series},
		{&p.image, imagePrefix + k.name},
		{&p.source, "linux-source-" + k.series},
	} {
		versions := []string{k.version}
		if part.file != &p.image {
			all, err := l.releases(ctx, part.pkg)
			if err != nil {
				return p, err
			}
			versions = order(all, k.version)
		}
		file, version, err := l.download(ctx, dir, part.pkg, versions)
		if err != nil {
			return p, err
		}
		if version != k.version {
			fmt.Fprintf(progress, "guest: %s is the one of %s: that of %s can't be had\n", part.pkg, version, k.version)
		}
		*part.file = file
		p.versions = append(p.versions, part.pkg+" "+version)
	}
	return p, nil
}

// buildTree fills dir with a kernel and its modules, siw among them, and the file packages,
// which says of what.
func (l lists) buildTree(ctx context.Context, k kernel, dir string, progress io.Writer) error {
	if _, err := find(aptGet, dpkgDeb, depmod, tarTool, xz, makeTool, compiler); err != nil {
		return err
	}
	scratch := filepath.Join(dir, "scratch")
	if err := os.Mkdir(scratch, 0o755); err != nil {
		return fmt.Errorf("guest: cache: %w", err)
	}
	fmt.Fprintf(progress, "guest: fetching the kernel %s (%s)\n", k.name, k.version)
	p, err := l.fetch(ctx, k, scratch, progress)
	if err != nil {
		return err
	}
	unpacked := filepath.Join(scratch, "image")
	if err := unpackPackage(ctx, p.image, unpacked); err != nil {
		return err
	}
	if err := keepKernel(unpacked, dir, k.name); err != nil {
		return err
	}
	fmt.Fprintf(progress, "guest: building siw from the kernel's source\n")
	if err := buildSiw(ctx, k, p, scratch, filepath.Join(dir, moduleDir(k.name), "extra")); err != nil {
		return fmt.Errorf("%w (built from %s)", err, strings.Join(p.versions, ", "))
	}
	if _, err := depmod.output(ctx, "", "-b", dir, k.name); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "packages"), []byte(strings.Join(p.versions, "\n")+"\n"), 0o644); err != nil {
		return fmt.Errorf("guest: cache: %w", err)
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
