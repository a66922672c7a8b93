package nvme

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// parseCommand is Command.Parse into a command that had other contents.
func parseCommand(b []byte) (Command, error) {
	c := Command{Opcode: 0xff, Data: Descriptor{Type: Keyed, Key: 1}, CDW15: 1}
	err := c.Parse(b)
	return c, err
}

// encoded is what put writes over old bytes of a buffer.
func encoded(n int, put func(b []byte)) []byte {
	b := bytes.Repeat([]byte{0xee}, n)
	put(b)
	return b
}

func command() Command {
	return Command{
		Opcode: IORead, Flags: UsesList, CID: 0x0102, NSID: 3,
		Data:  Descriptor{Type: KeyedInvalidate, Address: 0x1122334455667788, Length: 0x010203, Key: 0xa1a2a3a4},
		CDW10: 10, CDW11: 11, CDW12: 12, CDW13: 13, CDW14: 14, CDW15: 15,
	}
}

func TestACommandHasTheLayoutOfTheSpecification(t *testing.T) {
	c := command()
	assert.Equal(t, []byte{
		2, 0x40, 2, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 3, 2, 1, 0xa4, 0xa3, 0xa2, 0xa1, 0x4f,
		10, 0, 0, 0, 11, 0, 0, 0, 12, 0, 0, 0, 13, 0, 0, 0, 14, 0, 0, 0, 15, 0, 0, 0,
	}, encoded(CommandLen, c.Put))
	c.Data = Descriptor{Type: InCapsule, Address: 512, Length: 1 << 24}
	assert.Equal(t, []byte{0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1}, encoded(CommandLen, c.Put)[24:40])
}

func TestAnEncodedCommandIsParsedToItself(t *testing.T) {
	c := command()
	got, err := parseCommand(append(encoded(CommandLen, c.Put), "data"...))
	require.NoError(t, err)
	assert.Equal(t, c, got)
	_, err = parseCommand(make([]byte, CommandLen-1))
	require.Error(t, err)
	c.SetRange(1<<40|7, 65536)
	assert.Equal(t, uint64(1<<40|7), c.LBA())
	assert.EqualValues(t, 65536, c.Blocks())
}

func TestAnEncodedCompletionIsParsedToItself(t *testing.T) {
	c := Completion{Result: 0x0102030405060708, SQ: SQ{Head: 1, ID: 2}, CID: 0x0304, Status: LBAOutOfRange | DoNotRetry}
	b := encoded(CompletionLen, c.Put)
	assert.Equal(t, []byte{8, 7, 6, 5, 4, 3, 2, 1, 1, 0, 2, 0, 4, 3, 0, 0x81}, b)
	got, err := ParseCompletion(b)
	require.NoError(t, err)
	assert.Equal(t, c, got)
	_, err = ParseCompletion(append(b, 0))
	require.Error(t, err)
}

func TestAStatusIsAnErrorOfItsCode(t *testing.T) {
	require.NoError(t, Success.Err())
	err := (LBAOutOfRange | DoNotRetry).Err()
	require.ErrorIs(t, err, StatusError(LBAOutOfRange))
	assert.False(t, errors.Is(err, StatusError(InvalidField)))
	assert.Equal(t, "nvme: LBA Out of Range (Do Not Retry)", err.Error())
	assert.Equal(t, "status type 7, code 0xff", Status(0x7ff).String())
}

func TestAConnectCommandIsParsedToItself(t *testing.T) {
	c := Connect{QueueID: 3, QueueSize: 127, Attributes: NoFlowControl, KeepAlive: 5000}
	sent := c.Command()
	got, err := parseCommand(encoded(CommandLen, sent.Put))
	require.NoError(t, err)
	assert.Equal(t, FabricsConnect, got.FabricsType())
	assert.Equal(t, c, got.Connect())
	assert.Equal(t, []byte{0, 0, 3, 0, 127, 0, 4, 0, 0x88, 0x13, 0, 0}, encoded(CommandLen, sent.Put)[40:52])

	d := ConnectData{HostID: [16]byte{1, 2, 3}, Controller: DynamicController, Subsystem: "nqn.2026-01.a:b", Host: "nqn.2026-01.c:d"}
	data, err := ParseConnectData(encoded(ConnectDataLen, d.Put))
	require.NoError(t, err)
	assert.Equal(t, d, data)
	_, err = ParseConnectData(nil)
	require.Error(t, err)
}

func TestPrivateDataIsParsedToItself(t *testing.T) {
	r := ConnectRequest{QueueID: 1, RecvSize: 128, SendSize: 127, Controller: 9}
	b := r.Append(nil)
	assert.Equal(t, []byte{0, 0, 1, 0, 128, 0, 127, 0, 9, 0}, b[:10])
	got, refused := ParseConnectRequest(append(b, make([]byte, 24)...))
	assert.Zero(t, refused)
	assert.Equal(t, r, got)
	_, refused = ParseConnectRequest(b[:PrivateLen-1])
	assert.Equal(t, RejectPrivateLength, refused)
	b[0] = 1
	_, refused = ParseConnectRequest(b)
	assert.Equal(t, RejectRecordFormat, refused)

	size, err := ParseAccept(AppendAccept(nil, 128))
	require.NoError(t, err)
	assert.EqualValues(t, 128, size)
	_, err = ParseAccept(nil)
	require.Error(t, err)

	status, ok := ParseReject(RejectNoResources.Append(nil))
	assert.True(t, ok)
	assert.Equal(t, "No Resources", status.String())
	_, ok = ParseReject([]byte{1, 2, 3})
	assert.False(t, ok)
}

func TestIdentifyPagesAreParsedToThemselves(t *testing.T) {
	c := Controller{
		Serial: "s", Model: "a model", Firmware: "1.0", ID: 7, Type: ControllerIO, MaxTransfer: 8, AbortLimit: 3, AsyncLimit: 4,
		AsyncEvents: 1 << 8, KeepAliveUnit: 1, MaxCommands: 128, Namespaces: 2, Commands: HasCompare, VolatileCache: true,
		InCapsule: 4096, Subsystem: "nqn.2026-01.a:b",
	}
	page := encoded(PageLen, c.Put)
	got, err := ParseController(page)
	require.NoError(t, err)
	assert.Equal(t, c, got)
	le := binary.LittleEndian
	assert.EqualValues(t, 260, le.Uint32(page[1792:]), "IOCCSZ")
	assert.EqualValues(t, 1<<0|1<<2|1<<20, le.Uint32(page[536:]), "SGLS")

	n := Namespace{Blocks: 1 << 33, BlockShift: 12, ID: [16]byte{1, 2}}
	ns, err := ParseNamespace(encoded(PageLen, n.Put))
	require.NoError(t, err)
	assert.Equal(t, n, ns)
	assert.Equal(t, []byte{2, 16, 0, 0, 1, 2}, encoded(PageLen, n.PutNames)[:6])
}

func TestDiscoveryPagesAreParsedToThemselves(t *testing.T) {
	entries := []DiscoveryEntry{
		{Subsystem: "nqn.2026-01.a:b", Address: "10.0.0.1", Service: "4420", Port: 1, AdminSize: 32},
		{IPv6: true, Subsystem: "nqn.2026-01.a:c", Address: "fe80::1", Service: "4421", Port: 2, AdminSize: 32},
	}
	b := AppendDiscovery(nil, 5, entries)
	generation, n, err := ParseDiscoveryHeader(b)
	require.NoError(t, err)
	assert.EqualValues(t, 5, generation)
	assert.EqualValues(t, 2, n)
	for i, want := range entries {
		got, ok := ParseDiscoveryEntry(b[DiscoveryEntryLen*(i+1):])
		require.True(t, ok)
		assert.Equal(t, want, got)
	}
}

func TestSmallPartsAreParsedToThemselves(t *testing.T) {
	r := Range{LBA: 1 << 40, Blocks: 9}
	assert.Equal(t, r, ParseRange(r.Append(nil)))
	queues, ok := QueuesOf(Queues(5))
	assert.Equal(t, 5, queues)
	assert.True(t, ok)
	_, ok = QueuesOf(0xffff0000)
	assert.False(t, ok)
	c := GetLogPage(LogDiscovery, 1<<33|1024, 1<<20)
	offset, length := c.LogRange()
	assert.Equal(t, LogDiscovery, c.LogPage())
	assert.Equal(t, uint64(1<<33|1024), offset)
	assert.EqualValues(t, 1<<20, length)
	p := PropertyGet(PropertyCAP)
	assert.Equal(t, PropertyCAP, p.Property())
	assert.True(t, p.PropertyLen8())
	abort := Abort(3, 0x0102)
	assert.Equal(t, []byte{3, 0, 2, 1}, encoded(CommandLen, abort.Put)[40:44])
	queue, cid := abort.Aborted()
	assert.Equal(t, [2]uint16{3, 0x0102}, [2]uint16{queue, cid})
	assert.EqualValues(t, 0x040002, NamespaceChanged)
	assert.Equal(t, []uint32{1, 1024}, ParseNamespaceList([]byte{1, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0}))
	assert.Empty(t, ParseNamespaceList([]byte{1, 0, 0}))
	require.NoError(t, CheckName(DiscoverySubsystem))
	require.Error(t, CheckName("disk"))
}

// FuzzParse gives all decoders the same bytes. What they accept, they parse again to
// the same value after it was encoded.
func FuzzParse(f *testing.F) {
	c := command()
	f.Add(encoded(CommandLen, c.Put))
	d := ConnectData{Subsystem: "nqn.2026-01.a:b"}
	f.Add(encoded(ConnectDataLen, d.Put))
	page := Controller{InCapsule: 4096}
	f.Add(encoded(PageLen, page.Put))
	f.Add(AppendDiscovery(nil, 1, []DiscoveryEntry{{Subsystem: "nqn.2026-01.a:b"}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := parseCommand(b); err == nil {
			again, err := parseCommand(encoded(CommandLen, c.Put))
			require.NoError(t, err)
			assert.Equal(t, c, again)
			_, _ = c.LogRange()
			_, _, _, _ = c.Connect(), c.Ranges(), c.LBA(), c.Blocks()
		}
		if c, err := ParseCompletion(b); err == nil {
			again, err := ParseCompletion(encoded(CompletionLen, c.Put))
			require.NoError(t, err)
			assert.Equal(t, c, again)
		}
		if d, err := ParseConnectData(b); err == nil {
			assert.LessOrEqual(t, len(d.Subsystem), nameLen)
			encoded(ConnectDataLen, d.Put)
		}
		if n, err := ParseNamespace(b); err == nil && n.Blocks != 0 {
			assert.GreaterOrEqual(t, n.BlockShift, uint8(9))
		}
		_ = ParseNamespaceList(b)
		_, _ = ParseController(b)
		_, _ = ParseConnectRequest(b)
		_, _ = ParseAccept(b)
		_, _ = ParseReject(b)
		_, _, _ = ParseDiscoveryHeader(b)
		_, _ = ParseDiscoveryEntry(b)
	})
}
