package wire

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// put writes 32-bit numbers, least byte first, at an offset of a C struct.
func put(b []byte, at int, ns ...uint32) {
	for i, n := range ns {
		for j := range 4 {
			b[at+4*i+j] = byte(n >> (8 * j))
		}
	}
}

func TestInfosHaveTheLayoutOfTheCStructs(t *testing.T) {
	c := ClientInfo{Test: TransactionTest, Threads: 4}
	assert.Equal(t, []byte{6, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0}, c.Append(nil))
	s := ServerInfo{FirstPort: 62001}
	assert.Equal(t, []byte{6, 0, 0, 0, 1, 0, 0, 0, 0x31, 0xf2, 0, 0}, s.Append(nil))

	gotC, err := ParseClientInfo(append(c.Append(nil), 0xff, 0xff)) // padding is ignored
	require.NoError(t, err)
	assert.Equal(t, c, gotC)
	gotS, err := ParseServerInfo(s.Append(nil))
	require.NoError(t, err)
	assert.Equal(t, s, gotS)
}

func TestAQuitOfTheCProgramHasNoThreads(t *testing.T) {
	c, err := ParseClientInfo([]byte{6, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0})
	require.NoError(t, err)
	assert.Equal(t, ClientInfo{Test: QuitTest}, c)
}

func TestATransactionHasTheLayoutOfTheCStruct(t *testing.T) {
	cmd := &Transaction{
		Server: "host", Iterations: 4096, Threads: 2, EPs: 3, RSP: true, Validate: true, Poll: true, Port: 62000, Device: "ofa-v2-ib0",
		Ops: []Op{
			{Transfer: RDMAWrite, Segments: 1, Size: 4096},
			{Server: true, Transfer: SendRecv, Segments: 3, Size: 256, ReapOnRecv: true},
			{Transfer: SendRecv, Segments: 1, Size: 4096},
		},
	}
	want := make([]byte, 2568)
	put(want, 0, 6, 1)
	copy(want[8:], "host")
	put(want, 264, 4096, 2, 3, 0, 1, 0, 1, 1)
	put(want, 296, 62000)
	copy(want[304:], "ofa-v2-ib0")
	put(want, 560, 0, 3)
	put(want, 568, 0, 1, 1, 4096, 0)
	put(want, 588, 1, 2, 3, 256, 1)
	put(want, 608, 0, 2, 1, 4096, 0)
	assert.Equal(t, want, cmd.Append(nil))
	got, err := ParseTransaction(want)
	require.NoError(t, err)
	assert.Equal(t, cmd, got)
}

func TestAPerformanceCommandHasTheLayoutOfTheCStruct(t *testing.T) {
	cmd := &Performance{
		Server: "host", Device: "dev", Poll: true, Iterations: 8192, Pipeline: 16,
		Op: Op{Transfer: RDMARead, Size: 65536, Segments: 2}, Port: 62000,
	}
	want := make([]byte, 564)
	put(want, 0, 6, 1)
	copy(want[8:], "host")
	copy(want[264:], "dev")
	put(want, 520, 0, 0, 1, 8192, 16, 0, 65536, 2, 0)
	put(want, 556, 62000)
	assert.Equal(t, want, cmd.Append(nil))
	got, err := ParsePerformance(want)
	require.NoError(t, err)
	assert.Equal(t, cmd, got)

	quit := make([]byte, 528)
	copy(quit, "host")
	copy(quit[256:], "dev")
	put(quit, 520, 62000)
	assert.Equal(t, quit, (&Quit{Server: "host", Device: "dev", Port: 62000}).Append(nil))
}

func TestMemoryIsPacked(t *testing.T) {
	b := AppendMemory(nil, Memory{Context: 0x01020304, Addr: 0x1122334455667788})
	assert.Equal(t, []byte{4, 3, 2, 1, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11}, b)
	got, err := ParseMemory(append(b, b...), 2)
	require.NoError(t, err)
	assert.Equal(t, []Memory{{0x01020304, 0x1122334455667788}, {0x01020304, 0x1122334455667788}}, got)
	_, err = ParseMemory(b, 2)
	require.ErrorIs(t, err, ErrFormat)
}

func TestImpossibleCommandsOfAPeerAreRefused(t *testing.T) {
	good := func() *Transaction {
		return &Transaction{Iterations: 1, Threads: 1, EPs: 1, Ops: []Op{{Transfer: SendRecv, Segments: 1, Size: 1}}}
	}
	_, err := ParseTransaction(good().Append(nil))
	require.NoError(t, err)
	for name, spoil := range map[string]func(*Transaction){
		"no iterations":            func(c *Transaction) { c.Iterations = 0 },
		"no threads":               func(c *Transaction) { c.Threads = 0 },
		"too many threads":         func(c *Transaction) { c.Threads = MaxThreads + 1 },
		"too many endpoints":       func(c *Transaction) { c.EPs = MaxEPs + 1 },
		"an unknown transfer":      func(c *Transaction) { c.Ops[0].Transfer = 3 },
		"no segments":              func(c *Transaction) { c.Ops[0].Segments = 0 },
		"too many segments":        func(c *Transaction) { c.Ops[0].Segments = MaxSegments + 1 },
		"too many bytes":           func(c *Transaction) { c.Ops[0].Size, c.Ops[0].Segments = MaxTransfer/2+1, 2 },
		"validation of too little": func(c *Transaction) { c.Validate = true },
	} {
		c := good()
		spoil(c)
		_, err := ParseTransaction(c.Append(nil))
		assert.ErrorIs(t, err, ErrFormat, name)
	}
	b := good().Append(nil)
	binary.LittleEndian.PutUint32(b[564:], MaxOps+1)
	_, err = ParseTransaction(b)
	require.ErrorIs(t, err, ErrFormat)
	b = good().Append(nil)
	b[0] = 5
	_, err = ParseTransaction(b)
	require.ErrorContains(t, err, "version 5")
	for n := range 2568 {
		if n >= 588 {
			break // the rest of the message belongs to operations that are not there
		}
		_, err = ParseTransaction(good().Append(nil)[:n])
		require.ErrorIs(t, err, ErrFormat, n)
	}
}

func TestANameWithoutAnEndIsRefused(t *testing.T) {
	c := &Performance{Device: strings.Repeat("d", nameSize-1), Iterations: 1, Pipeline: 1, Op: Op{Segments: 1, Size: 1}}
	b := c.Append(nil)
	got, err := ParsePerformance(b)
	require.NoError(t, err)
	require.Equal(t, c, got)

	end := bytes.LastIndexByte(b, 'd') + 1
	require.Zero(t, b[end])
	b[end] = 'd'
	_, err = ParsePerformance(b)
	require.ErrorIs(t, err, ErrFormat)
	require.ErrorContains(t, err, "more than 255 bytes")
}

func FuzzParse(f *testing.F) {
	f.Add((&Transaction{Iterations: 1, Threads: 1, EPs: 1, Ops: []Op{{Transfer: SendRecv, Segments: 1, Size: 1}}}).Append(nil))
	f.Add((&Performance{Iterations: 1, Pipeline: 1, Op: Op{Segments: 1, Size: 1}}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if cmd, err := ParseTransaction(b); err == nil {
			again, err := ParseTransaction(cmd.Append(nil))
			require.NoError(t, err)
			require.Equal(t, cmd, again)
		}
		if cmd, err := ParsePerformance(b); err == nil {
			again, err := ParsePerformance(cmd.Append(nil))
			require.NoError(t, err)
			require.Equal(t, cmd, again)
		}
		_, _ = ParseClientInfo(b)
		_, _ = ParseServerInfo(b)
		_, _ = ParseMemory(b, MaxOps)
	})
}
