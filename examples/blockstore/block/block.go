// Package block names blocks by their content.
package block

import (
	"crypto/sha256"
	"encoding/hex"
)

// ID is a block's name: the SHA-256 of its bytes.
type ID [sha256.Size]byte

// IDOf computes the name of a block.
func IDOf(data []byte) ID { return sha256.Sum256(data) }

// String returns the first bytes of the name, enough to tell blocks apart in a message.
func (id ID) String() string { return hex.EncodeToString(id[:6]) }
