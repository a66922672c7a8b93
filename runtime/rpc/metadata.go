package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"maps"
	"slices"

	"godat/hw"
)

// Metadata are a few named values that go with a call beside its payload: a trace id, a tenant. A key has
// 1 to 64 of the bytes a to z, 0 to 9, "-", "_" and "."; a value has any bytes. A key without a value is as
// one that is not there.
type Metadata map[string]string

// mostKey is the most bytes of a key.
const mostKey = 64

// metadataKey is the key of a context's metadata.
type metadataKey struct{}

// carried is what a context has of metadata.
type carried struct {
	values  Metadata
	encoded []byte // nobody changes it
	err     error  // of values
}

// WithMetadata returns a context whose calls carry md, which is copied, beside what those of ctx carry. Of
// a key that both have, md's value goes; an empty value takes the key away. A wrong key fails each call with
// the context, before it is sent: the error is INVALID_PARAMETER. More bytes than both ends take are
// LENGTH_ERROR: see Config.Metadata.
//
// Any client may say anything of itself: a server that grants by a tenant's name has proved the name
// otherwise. A handler's own calls carry nothing of the request's: see [Request.SetContext].
func WithMetadata(ctx context.Context, md Metadata) context.Context {
	all := MetadataOf(ctx)
	if all == nil {
		all = make(Metadata, len(md))
	}
	maps.Copy(all, md)
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	c := &carried{values: all}
	c.encoded, c.err = all.encode()
	return context.WithValue(ctx, metadataKey{}, c)
}

// MetadataOf returns what calls with the context carry, as a copy; nil if that is nothing.
func MetadataOf(ctx context.Context) Metadata {
	if c := carriedBy(ctx); c != nil && len(c.values) > 0 {
		return maps.Clone(c.values)
	}
	return nil
}

func carriedBy(ctx context.Context) *carried {
	c, _ := ctx.Value(metadataKey{}).(*carried)
	return c
}

// encodedMetadata is what a call with the context sends.
func encodedMetadata(ctx context.Context) ([]byte, error) {
	if c := carriedBy(ctx); c != nil {
		return c.encoded, c.err
	}
	return nil, nil
}

// encode writes the pairs in the order of their keys: for each the length of the key in a byte, that of the
// value in two, the key and the value.
func (md Metadata) encode() (b []byte, err error) {
	for _, key := range slices.Sorted(maps.Keys(md)) {
		value := md[key]
		if !isKey(key) {
			return nil, hw.Errorf(opCall, hw.InvalidParameter, hw.Arg1,
				"a metadata key is %.80q; it may have 1 to %d of the bytes a to z, 0 to 9, \"-\", \"_\" and \".\"", key, mostKey)
		}
		if len(value) > mostMetadata {
			return nil, hw.Errorf(opCall, hw.LengthError, hw.NoSubtype, "the metadata value of %q has %d bytes; all metadata may have %d", key, len(value), mostMetadata)
		}
		b = append(b, byte(len(key)))
		b = binary.BigEndian.AppendUint16(b, uint16(len(value)))
		b = append(append(b, key...), value...)
	}
	return b, nil
}

func isKey[text string | []byte](key text) bool {
	for i := range len(key) {
		if c := key[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return 0 < len(key) && len(key) <= mostKey
}

// nextPair takes a pair from the beginning of encoded metadata; false if there is no proper one.
func nextPair(b []byte) (key, value, rest []byte, ok bool) {
	if len(b) < 3 {
		return nil, nil, nil, false
	}
	k, v := int(b[0]), int(binary.BigEndian.Uint16(b[1:]))
	if len(b)-3 < k+v || v == 0 || !isKey(b[3:3+k]) {
		return nil, nil, nil, false
	}
	return b[3 : 3+k], b[3+k : 3+k+v], b[3+k+v:], true
}

// isMetadata reports whether encoded metadata is what encode makes.
func isMetadata(b []byte) bool {
	var last []byte
	for len(b) > 0 {
		key, _, rest, ok := nextPair(b)
		if !ok || bytes.Compare(key, last) <= 0 {
			return false
		}
		last, b = key, rest
	}
	return true
}

// splitMetadata takes metadata, with its length before it, from what is behind a CALL's memory.
func splitMetadata(b []byte) (md, rest []byte, err error) {
	if len(b) < metadataHeader {
		return nil, nil, errMalformed
	}
	n := int(binary.BigEndian.Uint16(b))
	if b = b[metadataHeader:]; n == 0 || n > len(b) || !isMetadata(b[:n]) {
		return nil, nil, errMalformed
	}
	return b[:n], b[n:], nil
}

// Metadata is what the caller sent beside the payload, by [WithMetadata], as a copy: nil if that is nothing,
// and once the request is answered.
func (r *Request) Metadata() (md Metadata) {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done || len(r.metadata) == 0 {
		return nil
	}
	md = make(Metadata)
	for b := r.metadata; len(b) > 0; {
		key, value, rest, _ := nextPair(b) // which the reader has checked
		md[string(key)], b = string(value), rest
	}
	return md
}
