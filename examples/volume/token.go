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
}

// A token as bytes, little-endian, whose text is base32:
//
//	0         1        17          33     41         45      49          53      57
//	+---------+--------+-----------+------+----------+-------+-----------+-------+-----+
//	| version | volume | subsystem | size | slotsize | slots | namespace | peers | CRC |
//	+---------+--------+-----------+------+----------+-------+-----------+-------+-----+
const (
	tokenVersion = 1
	tokenLen     = 61
)

var tokenText = base32.StdEncoding.WithPadding(base32.NoPadding)

// String is what is printed.
func (t *token) String() string {
	b := append(make([]byte, 0, tokenLen), tokenVersion)
	b = append(b, t.Volume[:]...)
	b = append(b, t.Subsystem[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(t.Size))
	for _, v := range []uint32{uint32(t.SlotSize), uint32(t.Slots), t.Namespace, t.Peers} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return strings.ToLower(tokenText.EncodeToString(b))
}

// tokenOf is the token that an option has, or the file that it names.
func tokenOf(option string) (token, error) {
	if strings.ContainsRune(option, filepath.Separator) {
		b, err := os.ReadFile(option)
		if err != nil {
			return token{}, err
		}
		option = string(b)
	}
	return parseToken(option)
}

var errToken = errors.New("it is no token as create prints one, or a part of it is missing")

func parseToken(text string) (t token, err error) {
	b, err := tokenText.DecodeString(strings.ToUpper(strings.TrimSpace(text)))
	switch {
	case err != nil || len(b) == 0:
		return t, errToken
	case b[0] != tokenVersion:
		return t, fmt.Errorf("the token is of version %d, and this program knows %d", b[0], tokenVersion)
	case len(b) != tokenLen || binary.LittleEndian.Uint32(b[57:]) != crc32.ChecksumIEEE(b[:57]):
		return t, errToken
	}
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	return token{
		Volume: identity.ID(b[1:]), Subsystem: identity.ID(b[17:]), Size: int(binary.LittleEndian.Uint64(b[33:])),
		SlotSize: int(word(41)), Slots: int(word(45)), Namespace: word(49), Peers: word(53),
	}, nil
}
