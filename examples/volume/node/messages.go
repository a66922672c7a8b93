package node

import (
	"encoding/binary"
	"errors"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// note is what each call between nodes begins with, and its answer.
type note struct {
	from, released, floor uint64
	rotten                bool
}

const (
	noteLen = 25
	sizeLen = 4 // of each message behind the note
)

var errNote = errors.New("node: malformed message")

func parseNote(b []byte) (x note, rest []byte, err error) {
	if len(b) < noteLen {
		return x, nil, errNote
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	return note{word(0), word(1), word(2), b[24] != 0}, b[noteLen:], nil
}

// appendMessage appends a message. One that says nothing takes no room.
func appendMessage(b []byte, m *pb.Message) ([]byte, error) {
	size := proto.Size(m)
	if size == 0 {
		return b, nil
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(size))
	return proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(b, m)
}

// parseMessages parses a note, and the messages behind it, of a node for another one.
func parseMessages(b []byte, from, to uint64) (x note, messages []*pb.Message, err error) {
	x, b, err = parseNote(b)
	if err != nil || from != 0 && x.from != from {
		return x, nil, errNote
	}
	for len(b) != 0 {
		if len(b) < sizeLen {
			return x, nil, errNote
		}
		size := binary.LittleEndian.Uint32(b)
		if b = b[sizeLen:]; uint64(size) > uint64(len(b)) {
			return x, nil, errNote
		}
		m := new(pb.Message)
		if err := proto.Unmarshal(b[:size], m); err != nil {
			return x, nil, err
		}
		if m.GetFrom() != x.from || m.GetTo() != to {
			return x, nil, errNote
		}
		messages, b = append(messages, m), b[size:]
	}
	return x, messages, nil
}
