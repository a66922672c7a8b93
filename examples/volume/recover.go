package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"godat/examples/nvmeof/identity"
	"godat/examples/volume/journal"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/replica"
	"godat/examples/volume/secure"
	"godat/examples/volume/state"
)

// The way out of a lost majority: one node's directory becomes a volume of its own, which has another identity. So
// nothing that the lost nodes still say is taken, and hosts see another disk.

// recovery is what a directory becomes. It is in a file from before the first change until after the last one.
type recovery struct {
	About       about
	Index, Term uint64 // of the last record that the disk has
}

const recovering = "recovering.json"

// errNotForced is the error of a recover that has changed nothing.
var errNotForced = errors.New("nothing was changed; --force does it")

// recoverNode makes a stopped node's directory the only node of a new volume.
func recoverNode(o *recoverOptions, out io.Writer) error {
	dir := o.Data
	if o.At != "" {
		if err := checkAddr(o.At); err != nil {
			return usageError{fmt.Errorf("--at: %w", err)}
		}
	}
	was, err := readAbout(dir)
	if err != nil {
		return err
	}
	r, err := readRecovery(dir)
	if errors.Is(err, fs.ErrNotExist) {
		r, err = beginRecovery(o, &was, out)
	}
	if err == nil {
		err = r.finish(dir)
	}
	if err != nil {
		return err
	}
	t := r.About.token()
	fmt.Fprintf(out, "node %d alone is volume %v now, with records up to %d; hosts know it as %s; make its other nodes with --create --join --token %s, and add them\n",
		r.About.ID, t.Volume, r.Index, r.About.subsystem(), t.shown(dir))
	return nil
}

// readRecovery reads what a directory becomes.
func readRecovery(dir string) (r *recovery, err error) {
	b, err := os.ReadFile(filepath.Join(dir, recovering))
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	return r, err
}

// beginRecovery says what may be lost, and brings the disk up to all records that the node has.
func beginRecovery(o *recoverOptions, was *about, out io.Writer) (r *recovery, err error) {
	dir := o.Data
	next := *was
	next.Volume, next.Birth = uuid(identity.New()), newBirth()
	switch {
	case o.Beside != "":
		t, err := tokenOf(o.Beside)
		if err == nil && t.Namespace == was.Namespace {
			err = fmt.Errorf("the token's volume has namespace %d, as the new one, so they can't be served together", t.Namespace)
		}
		if err != nil {
			return nil, usageError{fmt.Errorf("--beside: %w", err)}
		}
		next.Subsystem = uuid(t.Subsystem)
	case was.Subsystem == was.Volume:
		next.Subsystem = next.Volume
	}
	if len(was.Secret) != 0 {
		secret := secure.NewSecret()
		next.Secret = secret[:]
	}
	f, err := openFiles(dir)
	if err != nil {
		return nil, busy(dir, err)
	}
	defer func() { err = errors.Join(err, f.close()) }()
	if f.about.Volume != was.Volume {
		return nil, errOvertaken(dir)
	}
	self, member := f.log.Member(was.ID)
	if !member {
		return nil, fmt.Errorf("%s: the node was never added to its volume, or was removed: it does not have the disk; recover another node's directory", dir)
	}
	if len(f.log.Members()) == 1 && (o.At == "" || o.At == self.Addr) {
		return nil, fmt.Errorf("%s: node %d is the only one of volume %v, so it has its majority: serve it; recover would only give the disk another identity",
			dir, was.ID, identity.ID(was.Volume))
	}
	if o.At != "" {
		self.Addr = o.At
	}
	next.Join, next.Peers = false, raftlog.Members{was.ID: {Addr: self.Addr}}
	j, err := journal.Open(f.journal, was.Layout)
	if err != nil {
		return nil, err
	}
	x, err := replica.Open(j, f.disk, f.log)
	if err != nil {
		return nil, err
	}
	if x.Rotten() {
		return nil, fmt.Errorf("%s: the node was being rebuilt, so its disk is of several moments: recover another node's directory; "+
			"if there is none, its blocks are in %[1]s/disk from byte %d on", dir, state.Size(0))
	}
	known, _ := x.Disk().Applied()
	_, last := f.log.Bounds()
	_, term := x.Disk().Applied()
	if record, err := f.log.Record(last); err == nil {
		term = record.Term
	}
	fmt.Fprintf(out, "%s is node %d of volume %v. It has the records up to %d, of term %d, and knows that those up to %d were committed. "+
		"LOST is what hosts were told of later records, if other nodes have any; the last %d records count as written, whether or not a host was told so\n",
		dir, was.ID, identity.ID(was.Volume), last, term, known, last-known)
	if !o.Force {
		return nil, errNotForced
	}
	if err := x.Apply(last); err != nil {
		return nil, err
	}
	if _, err := x.Release(); err != nil {
		return nil, err
	}
	if err := x.Disk().Ready(); err != nil {
		return nil, fmt.Errorf("%s: recover another node's directory: %w", dir, err)
	}
	index, term := x.Disk().Applied()
	r = &recovery{next, index, max(term, f.log.Vote().Term)}
	return r, writeWhole(filepath.Join(dir, recovering), r)
}

// errOvertaken is the error of a recover in whose way another one came.
func errOvertaken(dir string) error {
	return fmt.Errorf("%s: another recover has changed the directory meanwhile: look at what it said", dir)
}

// finish makes the files those of the new volume, unless they are. Interrupted, it is called again. The disk's lock keeps
// others from the files.
func (r *recovery) finish(dir string) (err error) {
	f := &files{about: r.About}
	if err := exact(filepath.Join(dir, "disk"), state.Size(f.about.Size)); err != nil {
		return err
	}
	if err := f.openDisk(dir); err != nil {
		return busy(dir, err)
	}
	defer func() { err = errors.Join(err, f.close()) }()
	is, err := readAbout(dir)
	if err != nil {
		return err
	}
	now, err := readRecovery(dir)
	gone, done := errors.Is(err, fs.ErrNotExist), is.Volume == r.About.Volume
	switch {
	case gone && done:
		return nil
	case gone || err == nil && now.About.Volume != r.About.Volume:
		return errOvertaken(dir)
	case err == nil && !done: // otherwise all is changed, and a node may have served since
		err = r.change(f, dir)
	}
	if err != nil {
		return busy(dir, err)
	}
	if err := os.Remove(filepath.Join(dir, recovering)); err != nil {
		return err
	}
	return secure.SyncDir(dir)
}

// change changes the files. The disk is open.
func (r *recovery) change(f *files, dir string) error {
	a := &f.about
	a.Layout.Volume = identity.ID(a.Volume)
	for _, name := range []string{"journal", "log"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "log"), 0o700); err != nil {
		return err
	}
	err := f.open(dir, false)
	if err == nil {
		_, err = journal.Open(f.journal, a.Layout)
	}
	if err == nil {
		err = state.Recover(f.disk, identity.ID(a.Volume), r.Index, r.Term)
	}
	if err == nil {
		err = f.log.Begin(r.Index, r.Term)
	}
	if err == nil {
		err = f.log.SetVote(raftlog.Vote{Term: r.Term})
	}
	if err == nil {
		err = f.log.SetMembers(a.Peers)
	}
	if err == nil {
		err = a.certify(dir)
	}
	if err == nil {
		t := a.token()
		err = t.save(dir)
	}
	if err == nil {
		err = writeWhole(filepath.Join(dir, "volume.json"), a)
	}
	return err
}
