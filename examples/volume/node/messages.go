package node

import (
	"encoding/binary"
	"errors"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

const sizeLen = 4 // of each message behind the note

var errNote = errors.New("node: malformed message")

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
		if m.GetFrom() != x.from || m.GetTo() != to || !sound(m) {
			return x, nil, errNote
		}
		messages, b = append(messages, m), b[size:]
	}
	return x, messages, nil
}

// sound reports whether a message is one that engines send to each other, and its entries are those that it says.
func sound(m *pb.Message) bool {
	switch m.GetType() {
	case pb.MsgApp, pb.MsgAppResp, pb.MsgVote, pb.MsgVoteResp, pb.MsgPreVote, pb.MsgPreVoteResp,
		pb.MsgHeartbeat, pb.MsgHeartbeatResp, pb.MsgSnap, pb.MsgTimeoutNow:
	default:
		return false
	}
	index, term := m.GetIndex(), m.GetLogTerm()
	for _, e := range m.GetEntries() {
		if index++; e.GetIndex() != index || e.GetTerm() < term || e.GetTerm() > m.GetTerm() {
			return false
		}
		term = e.GetTerm()
	}
	return m.GetTerm() != 0
}
