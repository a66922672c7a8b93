// Package identity makes the names by which hosts know a disk and its subsystem, and keeps
// them with the disk.
//
// Hosts take two disks of one identity for two ways to one disk, and spread their reads and
// writes over both. So an identity is drawn at random when a disk is served first, and the
// disk has it for ever, under whatever path, port or process it is served: Keep keeps it
// beside the disk's file.
package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// ID names a disk for ever: a UUID of RFC 4122. The zero ID names nothing.
type ID [16]byte

// New draws an identity at random (version 4).
func New() ID {
	var id ID
	_, _ = rand.Read(id[:]) // never fails
	id[6] = id[6]&0x0f | 4<<4
	id[8] = id[8]&0x3f | 1<<7
	return id
}

// dashes are where the text of a UUID has its dashes.
var dashes = [...]int{8, 13, 18, 23}

// Parse decodes the text of a UUID, of any version of RFC 4122, as String encodes it.
func Parse(text string) (id ID, err error) {
	digits := []byte(text)
	for i := len(dashes) - 1; i >= 0 && len(text) == 36; i-- {
		if at := dashes[i]; text[at] == '-' {
			digits = append(digits[:at], digits[at+1:]...)
		}
	}
	if n, err := hex.Decode(make([]byte, len(digits)), digits); len(digits) != 32 || n != len(id) || err != nil {
		return ID{}, fmt.Errorf("%q is no UUID, as %s is one", text, New())
	}
	_, _ = hex.Decode(id[:], digits)
	if id[8]&0xc0 != 0x80 || id[6]>>4 == 0 {
		return ID{}, fmt.Errorf("%q is no UUID of RFC 4122: its version or its variant is wrong", text)
	}
	return id, nil
}

// String is the text of the UUID: 7f4df5b5-8e0e-4b43-8d2c-6f3a6e0f3d07.
func (id ID) String() string {
	h := hex.EncodeToString(id[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// Name is the NVMe qualified name of a subsystem or a host with that identity.
func (id ID) Name() string { return "nqn.2014-08.org.nvmexpress:uuid:" + id.String() }

// serialLen is the length of a serial number in bytes.
const serialLen = 20

// Serial is the serial number of the subsystem with a name: another one for each, and the
// same one wherever the subsystem is served.
func Serial(subsystem string) string {
	sum := sha256.Sum256([]byte(subsystem))
	return strings.ToUpper(hex.EncodeToString(sum[:]))[:serialLen]
}
