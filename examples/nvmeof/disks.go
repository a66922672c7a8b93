package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/store"
	"godat/examples/nvmeof/target"
)

// disks are the disks that serve serves.
type disks struct {
	all       []target.Namespace
	subsystem string   // its name, of --subsystem or of a disk
	about     []string // a line about each disk
}

// openDisks opens the stores of the disks. On an error it has opened none.
func openDisks(o *serveOptions, log *slog.Logger) (d disks, err error) {
	said, err := o.identities()
	if err != nil {
		return d, err
	}
	d.subsystem = o.Subsystem
	for i, text := range o.Disk {
		if err := d.open(text, said[i+1], o, log); err != nil {
			return disks{}, errors.Join(err, closeDisks(d.all))
		}
	}
	if d.subsystem == "" && len(d.all) != 0 {
		d.subsystem = d.all[0].ID.Name()
	}
	return d, nil
}

// open opens the next disk. The first one that keeps its identity names the subsystem, so
// that hosts find it again when the target was started again.
func (d *disks) open(text string, said identity.ID, o *serveOptions, log *slog.Logger) error {
	path, size, err := parseDisk(text)
	if err != nil {
		return err
	}
	_, err = os.Stat(path)
	fresh := errors.Is(err, fs.ErrNotExist)
	if fresh && path != inMemory && said != (identity.ID{}) {
		return fmt.Errorf("--disk %s: %s is not there, and --id says which disk it is: an empty one in its place would be that disk without its data to hosts. "+
			"Look for the file; for a new disk of this identity make the file first (`truncate -s SIZE %[2]s`)", text, path)
	}
	s, err := openStore(path, size, o.Shared)
	if err != nil {
		return err
	}
	id, where, err := identify(path, fresh, said, log)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	if d.subsystem == "" && (path != inMemory || said != identity.ID{}) {
		d.subsystem = id.Name()
	}
	d.all = append(d.all, target.Namespace{Store: s, BlockSize: o.Block, ID: id})
	d.about = append(d.about, fmt.Sprintf("disk %d: %s, UUID %v, %s", len(d.all), text, id, where))
	return nil
}

// identify is the identity of a disk, and where it comes from.
func identify(path string, fresh bool, said identity.ID, log *slog.Logger) (id identity.ID, where string, err error) {
	if path == inMemory {
		if said != (identity.ID{}) {
			return said, "as --id says", nil
		}
		return identity.New(), "which ends with the target", nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return id, "", err
	case !info.Mode().IsRegular() && said == (identity.ID{}):
		return id, "", fmt.Errorf("--disk %s: a device has no place for the identity by which hosts know the disk: say it, each time, as --id (here is a new one: %v)", path, identity.New())
	case !info.Mode().IsRegular():
		return said, "as --id says", nil
	}
	kept, err := identity.Keep(path, fresh, said)
	switch {
	case err != nil && said == (identity.ID{}):
		return id, "", fmt.Errorf("--disk %s: %w (--id says it)", path, err)
	case err != nil:
		log.Warn("the identity that --id says is not kept", "disk", path, "error", err)
		return said, "as --id says", nil
	case kept.Made && !fresh:
		log.Warn("a file without an identity beside it: hosts see a disk that they don't know", "disk", path, "id", kept.ID)
	}
	return kept.ID, "kept in " + kept.Path, nil
}

func closeDisks(disks []target.Namespace) error {
	var errs []error
	for _, d := range disks {
		errs = append(errs, d.Store.Close())
	}
	return errors.Join(errs...)
}

// inMemory is the path of a disk in memory.
const inMemory = "mem"

// parseDisk decodes what --disk says.
func parseDisk(text string) (path string, size int, err error) {
	at := strings.LastIndexByte(text, ':')
	if at < 0 {
		return text, 0, nil
	}
	if size, err = parseSize(text[at+1:]); err != nil {
		return "", 0, fmt.Errorf("--disk %s: %w", text, err)
	}
	return text[:at], size, nil
}

func openStore(path string, size int, shared bool) (store.Store, error) {
	switch {
	case path == inMemory:
		return store.NewMemory(size)
	case shared:
		return store.OpenShared(path, size)
	}
	return store.OpenFile(path, size)
}

// identities are those that --id says, by disk, from 1.
func (o *serveOptions) identities() (map[int]identity.ID, error) {
	said := make(map[int]identity.ID)
	for _, text := range o.ID {
		number, uuid, found := strings.Cut(text, "=")
		if !found {
			number, uuid = "1", text
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > len(o.Disk) {
			return nil, fmt.Errorf("--id %s: there is no disk %s", text, number)
		}
		id, err := identity.Parse(uuid)
		if err != nil {
			return nil, fmt.Errorf("--id %s: %w", text, err)
		}
		if _, twice := said[n]; twice {
			return nil, fmt.Errorf("--id %s: disk %d has two identities", text, n)
		}
		said[n] = id
	}
	return said, nil
}

// controllers are the ids of --controllers; the zero range means the target's default.
func (o *serveOptions) controllers() (r target.IDRange, err error) {
	if o.Controllers == "" {
		return r, nil
	}
	first, last, _ := strings.Cut(o.Controllers, "-")
	a, err1 := strconv.ParseUint(first, 10, 16)
	b, err2 := strconv.ParseUint(last, 10, 16)
	if err1 != nil || err2 != nil || a == 0 {
		return r, fmt.Errorf("--controllers %s is no range, as 1-1000 is one", o.Controllers)
	}
	return target.IDRange{First: uint16(a), Last: uint16(b)}, nil
}
