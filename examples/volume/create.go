package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"godat/examples/nvmeof/identity"
	"godat/examples/volume/journal"
	"godat/examples/volume/node"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/secure"
	"godat/examples/volume/state"
)

// nodes is the most nodes that a volume ever has, those that were removed included.
const nodes = 8

// mostVolumes is the highest namespace id: each has an ANA group.
const mostVolumes = 128

// format is the version of a node's directory. One of before had no identity.
const format = 2

// about is what a node's directory says of itself, in the file that is made last.
type about struct {
	Format    int
	Volume    uuid // of which it is
	Subsystem uuid
	Name      string // a label
	ID        uint64
	Join      bool            // it was made to be added
	Peers     raftlog.Members // at the beginning
	Namespace uint32
	Size      int
	Layout    journal.Layout
	Birth     uint64        // drawn when the files were made
	Tick      time.Duration `json:",omitempty"` // 0 is the default one
	Secret    []byte        `json:",omitempty"` // the token's
}

// uuid is an identity as text.
type uuid identity.ID

// MarshalText implements encoding.TextMarshaler.
func (u uuid) MarshalText() ([]byte, error) { return []byte(identity.ID(u).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (u *uuid) UnmarshalText(text []byte) error {
	id, err := identity.Parse(string(text))
	*u = uuid(id)
	return err
}

// disk is the identity by which hosts know the disk: it comes from the volume's and the namespace's number.
func (a *about) disk() (id identity.ID) {
	sum := sha256.Sum256(binary.LittleEndian.AppendUint32(append([]byte("godat volume\n"), a.Volume[:]...), a.Namespace))
	copy(id[:], sum[:])
	id[6], id[8] = id[6]&0x0f|8<<4, id[8]&0x3f|0x80 // a UUID of version 8
	return id
}

// subsystem is the name of the subsystem.
func (a *about) subsystem() string { return identity.ID(a.Subsystem).Name() }

// peers are the members at the beginning, as text.
func (a *about) peers() string { return strings.Join(addresses(a.Peers), ",") }

// terms are what the nodes compare, beside what package node compares.
func (a *about) terms() node.Terms {
	t := node.Terms{All: []node.Term{{Name: "subsystem", Value: a.subsystem()}, {Name: "namespace", Value: strconv.Itoa(int(a.Namespace))}}}
	if !a.Join {
		t.Founding = []node.Term{{Name: "peers", Value: a.peers()}}
	}
	return t
}

// token is what other nodes of the volume are made with.
func (a *about) token() token {
	t := token{
		Volume: identity.ID(a.Volume), Subsystem: identity.ID(a.Subsystem), Size: a.Size, SlotSize: a.Layout.SlotSize,
		Slots: a.Layout.Slots, Namespace: a.Namespace, Peers: crc32.ChecksumIEEE([]byte(a.peers())),
	}
	copy(t.Secret[:], a.Secret)
	return t
}

// loopback reports whether all nodes are on one machine, so that nobody else reaches what they say.
func (a *about) loopback() bool {
	for _, m := range a.Peers {
		if !loopback(m.Addr) {
			return false
		}
	}
	return true
}

func loopback(addr string) bool {
	host, _, _ := net.SplitHostPort(addr)
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// certify makes the node's certificate, if nodes of its volume have one.
func (a *about) certify(dir string) error {
	t := a.token()
	if !t.secures() {
		return nil
	}
	c, err := t.Secret.Issue(t.Volume.String(), fmt.Sprintf("node %d", a.ID))
	if err != nil {
		return err
	}
	return c.Save(filepath.Join(dir, "tls"))
}

// describe says what is created.
func describe(o *volumeOptions) (a about, err error) {
	t, err := o.token()
	if err != nil {
		return a, err
	}
	a = about{Format: format, Volume: uuid(t.Volume), Subsystem: uuid(t.Subsystem), Name: o.Name, ID: o.ID, Join: o.Join, Namespace: t.Namespace, Size: t.Size, Birth: newBirth()}
	a.Layout = journal.Layout{Nodes: nodes, Slots: t.Slots, SlotSize: t.SlotSize, Volume: t.Volume}
	if a.Peers, err = parsePeers(o.Peers); err != nil {
		return a, err
	}
	if o.Tick != nil {
		if a.Tick, err = *o.Tick, checkTick(*o.Tick); err != nil {
			return a, err
		}
	}
	if o.Token == "" && !o.Plain && (o.TLS || !a.loopback()) {
		t.Secret = secure.NewSecret()
	}
	if t.secures() {
		a.Secret = t.Secret[:]
	}
	_, self := a.Peers[o.ID]
	switch {
	case o.Plain && o.TLS:
		return a, errors.New("--tls and --plain are two ways, of which a volume has one")
	case o.Token != "" && (o.Plain && t.secures() || o.TLS && !t.secures()):
		return a, errors.New("--tls and --plain are for the first node of a volume; the token says it to the others")
	case o.ID == 0:
		return a, fmt.Errorf("--id is missing, the number of this node, 1 to %d", nodes)
	case !self:
		return a, fmt.Errorf("--peers has no node %d", o.ID)
	case a.Namespace < 1 || a.Namespace > mostVolumes:
		return a, fmt.Errorf("namespace %d; it may be 1 to %d", a.Namespace, mostVolumes)
	case a.Size%blockSize != 0:
		return a, fmt.Errorf("--size is %d bytes; a disk has blocks of %d", a.Size, blockSize)
	case a.Layout.SlotSize < leastSlot:
		return a, fmt.Errorf("--slot-size is %d bytes; it may be %d or more", a.Layout.SlotSize, leastSlot)
	}
	if err := checkPeers(a.Peers); err != nil {
		return a, fmt.Errorf("--peers: %w", err)
	}
	if o.Token != "" && !o.Join && a.token().Peers != t.Peers {
		return a, errors.New("--peers are not those of the node that printed the token")
	}
	if err := a.Layout.Check(); err != nil {
		return a, fmt.Errorf("--slots %d and --slot-size %d: %w", a.Layout.Slots, a.Layout.SlotSize, err)
	}
	return a, nil
}

// newBirth draws a number of a node's files, by which other nodes see that they were made again.
func newBirth() uint64 {
	id := identity.New()
	return binary.LittleEndian.Uint64(id[8:])
}

const (
	blockSize = 4096
	leastSlot = 8 << 10 // hosts make no shorter limit
)

// token is the token that the options have or make.
func (o *volumeOptions) token() (t token, err error) {
	switch {
	case o.Token != "":
		if t, err = tokenOf(o.Token); err != nil {
			return t, fmt.Errorf("--token: %w", err)
		}
	case o.Join:
		return t, errors.New("--join is for a node of a volume that is there: give its --token")
	default:
		t = token{Volume: identity.New(), Size: 1 << 30, SlotSize: 1 << 20, Slots: 16, Namespace: 1}
		t.Subsystem = t.Volume
	}
	if o.Beside != "" {
		beside, err := tokenOf(o.Beside)
		switch {
		case err != nil:
			return t, fmt.Errorf("--beside: %w", err)
		case o.Token != "":
			return t, errors.New("--beside is for the first node of a volume; the others have --token alone")
		case o.Namespace == 0 || o.Namespace == beside.Namespace:
			return t, fmt.Errorf("--beside wants a --namespace that none of the volumes has which are served together; %d is that of the token's volume", beside.Namespace)
		}
		t.Subsystem = beside.Subsystem
	}
	have := t
	if o.Size != "" {
		if t.Size, err = parseSize(o.Size); err != nil {
			return t, fmt.Errorf("--size: %w", err)
		}
	}
	if o.SlotSize != "" {
		if t.SlotSize, err = parseSize(o.SlotSize); err != nil {
			return t, fmt.Errorf("--slot-size: %w", err)
		}
	}
	if o.Slots != 0 {
		t.Slots = o.Slots
	}
	if o.Namespace != 0 {
		t.Namespace = o.Namespace
	}
	if o.Token == "" || t == have {
		return t, nil
	}
	for _, x := range []struct {
		name        string
		here, there int
	}{{"size", t.Size, have.Size}, {"slot-size", t.SlotSize, have.SlotSize}, {"slots", t.Slots, have.Slots}, {"namespace", int(t.Namespace), int(have.Namespace)}} {
		if x.here != x.there {
			return t, fmt.Errorf("--%s: %d here, %d in the token", x.name, x.here, x.there)
		}
	}
	return t, nil
}

// create makes a node's directory, or leaves nothing, also if the context ends.
func create(ctx context.Context, o *volumeOptions, dir string) (token, error) {
	a, err := describe(o)
	if err != nil {
		return token{}, usageError{err}
	}
	t := a.token()
	if t.Peers, err = cmpPeers(o, t); err != nil {
		return t, err
	}
	fresh, err := vacant(dir)
	if err != nil {
		return t, usageError{fmt.Errorf("--data: %w", err)}
	}
	if err := claim(dir); err != nil {
		return t, err
	}
	if err = a.fill(dir, o.Token == ""); err == nil {
		err = cmp.Or(context.Cause(ctx), a.certify(dir))
	}
	if err == nil {
		err = t.save(dir)
	}
	if err == nil {
		err = writeWhole(filepath.Join(dir, "volume.json"), &a)
	}
	if err == nil {
		err = cmp.Or(context.Cause(ctx), secure.SyncDir(filepath.Dir(dir)))
	}
	if err == nil {
		return t, nil
	}
	for _, name := range []string{"volume.json", "volume.json.new", "journal", "disk", "tls", "token", claimed} {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, name)))
	}
	if fresh {
		err = errors.Join(err, os.Remove(dir))
	}
	return t, err
}

// claimed is what create makes first, and removes last: who has made it has the directory.
const claimed = "log"

// claim makes a vacant directory the caller's, of several that may want it.
func claim(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	err := os.Mkdir(filepath.Join(dir, claimed), 0o700)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: another create makes a node there: %w", dir, err)
	}
	return err
}

// vacant refuses a directory that has something, and says whether it is new.
func vacant(dir string) (fresh bool, err error) {
	all, err := os.ReadDir(dir)
	info, errStat := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case errStat == nil && !info.IsDir():
		return false, fmt.Errorf("%s is a file, and no directory", dir)
	case err != nil:
		return false, err
	}
	for _, name := range []string{"volume.json", "journal", "disk", "log"} {
		if slices.ContainsFunc(all, func(x fs.DirEntry) bool { return x.Name() == name }) {
			return false, fmt.Errorf("%s: it has a volume already, or a part of one: %s is there; serve it without --create, or give an empty directory", dir, name)
		}
	}
	for _, x := range all {
		if x.Name() != "lost+found" { // as a new file system has
			return false, fmt.Errorf("%s is not empty: %s is there; give an empty directory, or a new one", dir, x.Name())
		}
	}
	return false, nil
}

// cmpPeers are the peers that a token has: those of the first node, also when this one was made to be added.
func cmpPeers(o *volumeOptions, own token) (uint32, error) {
	if o.Token == "" {
		return own.Peers, nil
	}
	t, err := tokenOf(o.Token)
	return t.Peers, err
}

// logRoom is the space that a log wants: for a file, and the next one.
const logRoom = 2 * raftlog.Segment

// fill makes the files of a directory. The volume's first node has the choice of a size.
func (a *about) fill(dir string, first bool) error {
	free, err := space(dir)
	if err != nil {
		return err
	}
	if need := uint64(a.Layout.Size() + state.Size(a.Size) + logRoom); need > free {
		size := ""
		if first {
			size = ", or another --size"
		}
		return fmt.Errorf("%s: the node wants %d MiB, and the file system has %d: take another one%s", dir, need>>20, free>>20, size)
	}
	f := &files{about: *a}
	err = f.open(dir, false)
	if err == nil {
		_, err = journal.Open(f.journal, a.Layout)
	}
	if err == nil {
		err = state.Make(f.disk, identity.ID(a.Volume))
	}
	if err == nil && !a.Join {
		err = f.log.SetMembers(a.Peers)
	}
	return errors.Join(err, f.close())
}

// writeWhole writes a file as JSON, which is there for good and whole, or not.
func writeWhole(name string, what any) error {
	b, err := json.MarshalIndent(what, "", "  ")
	if err != nil {
		return err
	}
	w, err := os.OpenFile(name+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	if err = errors.Join(err, w.Sync(), w.Close()); err != nil {
		return err
	}
	if err := os.Rename(name+".new", name); err != nil {
		return err
	}
	return secure.SyncDir(filepath.Dir(name))
}

// createAloud is create, and says what it did.
func createAloud(ctx context.Context, o *volumeOptions, provider, dir string, out io.Writer) error {
	if err := o.firstOfAll(ctx, provider); err != nil {
		return err
	}
	t, err := create(ctx, o, dir)
	switch {
	case err != nil:
		return err
	case o.Token == "":
		fmt.Fprintf(out, "volume %v: make its other nodes with --token %s\n", t.Volume, t.shown(dir))
	default:
		fmt.Fprintf(out, "volume %v: node %d is in %s\n", t.Volume, o.ID, dir)
	}
	return nil
}
