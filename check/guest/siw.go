package guest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// siwSource is siw's directory in the kernel's source: the distribution's kernels
// have rxe but not siw.
const siwSource = "drivers/infiniband/sw/siw"

// buildSiw builds siw.ko in scratch and puts it into the directory into. It uses
// the kernel's own headers and source, unpacked below scratch.
func buildSiw(ctx context.Context, k kernel, p parts, scratch, into string) error {
	headers := filepath.Join(scratch, "headers")
	if err := unpackHeaders(ctx, k, p, headers); err != nil {
		return err
	}
	if err := unpackSiw(ctx, k, p, scratch); err != nil {
		return err
	}
	source := filepath.Join(scratch, "linux-source-"+k.series, siwSource)
	_, err := makeTool.output(ctx, "", "-s", "-C", filepath.Join(headers, "usr/src/linux-headers-"+k.name),
		"M="+source, "CC="+compiler.name, "CONFIG_RDMA_SIW=m", "modules")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(into, 0o755); err != nil {
		return fmt.Errorf("guest: cache: %w", err)
	}
	return os.Rename(filepath.Join(source, "siw.ko"), filepath.Join(into, "siw.ko"))
}

// unpackHeaders unpacks the headers that modules are built against. Its packages
// expect to be unpacked at the root, in one line of a makefile, which unpackHeaders
// changes.
func unpackHeaders(ctx context.Context, k kernel, p parts, headers string) error {
	for _, file := range []string{p.headers, p.common, p.kbuild} {
		if err := unpackPackage(ctx, file, headers); err != nil {
			return err
		}
	}
	makefile := filepath.Join(headers, "usr/src/linux-headers-"+k.name, "Makefile")
	text, err := os.ReadFile(makefile)
	if err != nil {
		return fmt.Errorf("guest: kernel headers: %w", err)
	}
	text = bytes.ReplaceAll(text, []byte("include /usr/src/"), []byte("include "+headers+"/usr/src/"))
	return os.WriteFile(makefile, text, 0o644)
}

// unpackSiw unpacks siw's directory from the kernel's source package, which is a
// package around one compressed archive.
func unpackSiw(ctx context.Context, k kernel, p parts, scratch string) error {
	if err := unpackPackage(ctx, p.source, scratch); err != nil {
		return err
	}
	source := "linux-source-" + k.series
	_, err := tarTool.output(ctx, scratch, "-xJf", "usr/src/"+source+".tar.xz", source+"/"+siwSource)
	return err
}
