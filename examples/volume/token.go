package main

import (
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"

	"godat/examples/nvmeof/identity"
	"godat/examples/volume/secure"
)

// token is what the first create of a volume draws and prints, and all other nodes of it are made with.
type token struct {
	Volume    identity.ID
	Subsystem identity.ID // the volume's, or that of the volume beside which it was made
	Size      int
	SlotSize  int
	Slots     int
	Namespace uint32
	Peers     uint32 // a CRC of those that it begins with
	// Secret is what the certificates of its nodes come from; zeros if the nodes have none.
	Secret secure.Secret
}

// secures reports whether the volume's nodes have certificates.
func (t *token) secures() bool { return t.Secret != secure.Secret{} }

// A token as bytes, little-endian, whose text is base32:
//
//	0         1        17          33     41         45      49          53      57
//	+---------+--------+-----------+------+----------+-------+-----------+-------+--------+-----+
//	| version | volume | subsystem | size | slotsize | slots | namespace | peers | secret | CRC |
//	+---------+--------+-----------+------+----------+-------+-----------+-------+--------+-----+
//
// Version 1 has no secret, and version 2 has one of 32 bytes.
const (
	tokenVersion = 2
	tokenHead    = 57
)

var tokenText = base32.StdEncoding.WithPadding(base32.NoPadding)

// String is what is printed.
func (t *token) String() string {
	b := []byte{tokenVersion}
	if !t.secures() {
		b[0] = 1
	}
	b = append(b, t.Volume[:]...)
	b = append(b, t.Subsystem[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(t.Size))
	for _, v := range []uint32{uint32(t.SlotSize), uint32(t.Slots), t.Namespace, t.Peers} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	if t.secures() {
		b = append(b, t.Secret[:]...)
	}
	b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return strings.ToLower(tokenText.EncodeToString(b))
}

// shown is the token of a directory as commands print it: what they print others read, so of a secret it is the file.
func (t *token) shown(dir string) string {
	if t.secures() {
		return filepath.Join(dir, "token") + ", a file that is secret"
	}
	return t.String()
}

// save writes the token to its file in a directory.
func (t *token) save(dir string) error {
	return secure.WriteFile(filepath.Join(dir, "token"), []byte(t.String()+"\n"))
}

// tokenOf is the token that an option has, or the file that it names.
func tokenOf(option string) (token, error) {
	t, err := parseToken(option)
	if err == nil {
		return t, nil
	}
	b, errFile := os.ReadFile(option)
	switch {
	case errFile == nil:
		if t, err = parseToken(string(b)); err != nil {
			err = fmt.Errorf("the file %s: %w", option, err)
		}
	case strings.ContainsRune(option, filepath.Separator):
		err = errFile
	case errors.Is(err, errToken):
		err = fmt.Errorf("%w; and there is no such file", err)
	}
	return t, err
}

var errToken = errors.New("it is no token as create prints one, or a part of it is missing")

func parseToken(text string) (t token, err error) {
	b, err := tokenText.DecodeString(strings.ToUpper(strings.TrimSpace(text)))
	switch {
	case err != nil || len(b) == 0:
		return t, errToken
	case b[0] < 1 || b[0] > tokenVersion && (b[0] >= 16 || len(b) < tokenHead): // so many versions there will not be
		return t, errToken
	case b[0] > tokenVersion:
		return t, fmt.Errorf("the token is of version %d, and this program knows those up to %d", b[0], tokenVersion)
	}
	end := tokenHead
	if b[0] > 1 {
		end += len(t.Secret)
	}
	if len(b) != end+4 || binary.LittleEndian.Uint32(b[end:]) != crc32.ChecksumIEEE(b[:end]) {
		return t, errToken
	}
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	t = token{
		Volume: identity.ID(b[1:]), Subsystem: identity.ID(b[17:]), Size: int(binary.LittleEndian.Uint64(b[33:])),
		SlotSize: int(word(41)), Slots: int(word(45)), Namespace: word(49), Peers: word(53),
	}
	copy(t.Secret[:], b[tokenHead:end])
	return t, nil
}
