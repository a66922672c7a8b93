package iwarp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// tape is a file in memory.
type tape struct {
	bytes.Buffer
	closed chan struct{}
}

func (f *tape) Close() error { close(f.closed); return nil }

// eachPacket parses a pcapng file of TCP over IPv4, and calls f with each packet from its TCP
// header on, and its sender's port.
func eachPacket(t tester, file []byte, f func(tcp []byte, port uint16)) {
	t.Helper()
	for len(file) > 0 {
		require.GreaterOrEqual(t, len(file), 12)
		kind, size := binary.LittleEndian.Uint32(file), binary.LittleEndian.Uint32(file[4:])
		require.Zero(t, size%4)
		require.Equal(t, size, binary.LittleEndian.Uint32(file[size-4:]))
		body := file[8 : size-4]
		file = file[size:]
		if kind != packetBlock {
			continue
		}
		n := binary.LittleEndian.Uint32(body[12:])
		ip := body[20 : 20+n]
		require.Equal(t, byte(0x45), ip[0])
		require.Equal(t, n, uint32(binary.BigEndian.Uint16(ip[2:])))
		sum := uint32(0)
		for i := 0; i < 20; i += 2 {
			sum += uint32(binary.BigEndian.Uint16(ip[i:]))
		}
		require.Equal(t, uint32(0xffff), sum&0xffff+sum>>16, "the IP header's checksum")
		f(ip[20:], binary.BigEndian.Uint16(ip[20:]))
	}
}

// streams joins the streams of a pcapng file by their sequence numbers. It returns each end's
// octets by the end's port.
func streams(t tester, file []byte) map[uint16][]byte {
	t.Helper()
	out, first := map[uint16][]byte{}, map[uint16]uint32{}
	eachPacket(t, file, func(tcp []byte, port uint16) {
		seq := binary.BigEndian.Uint32(tcp[4:])
		if tcp[13]&tcpSyn != 0 {
			first[port] = seq + 1
			return
		}
		require.Equal(t, first[port]+uint32(len(out[port])), seq)
		out[port] = append(out[port], tcp[20:]...)
	})
	return out
}

func TestATraceRecordsTheConnection(t *testing.T) {
	var mu sync.Mutex
	tapes := map[string]*tape{}
	p := New(Config{Trace: func(local, remote net.Addr) io.WriteCloser {
		mu.Lock()
		defer mu.Unlock()
		tapes[local.String()] = &tape{closed: make(chan struct{})}
		return tapes[local.String()]
	}})
	na, nb := newNode(t, p, nil), newNode(t, p, nil)
	a, b := na.peer(), nb.peer()
	src, dst := na.memory(100000, hw.LocalRead), nb.memory(100000, hw.LocalWrite)
	for i := range src.buf {
		src.buf[i] = byte(i * 7)
	}
	b.recv(dst.sge(0, 100000))
	join(a, b)
	a.post(hw.SendWR{Op: hw.OpSend, SGL: []hw.SGE{src.sge(0, 100000)}})
	b.received(0)
	require.Equal(t, src.buf, dst.buf)
	a.end(true)
	b.end(true)
	for _, tp := range tapes {
		<-tp.closed
	}
	la, lb := a.info.Local, b.info.Local
	one, two := streams(t, tapes[la.String()].Bytes()), streams(t, tapes[lb.String()].Bytes())
	assert.Equal(t, one, two, "both ends tell the same story")

	stream := one[uint16(la.(*net.TCPAddr).Port)]
	req, n, err := wire.ParseMPARequest(stream)
	require.NoError(t, err)
	assert.True(t, req.CRC)
	var got []byte
	for stream = stream[n:]; len(stream) > 0; stream = stream[n:] {
		var ulpdu []byte
		ulpdu, n, err = wire.ParseFPDU(stream, true)
		require.NoError(t, err)
		var h wire.Header
		k, err := h.Parse(ulpdu, len(ulpdu))
		require.NoError(t, err)
		got = append(got, ulpdu[k:]...)
	}
	assert.Equal(t, src.buf, got)
}

// carry connects two devices over TCP, of which the first has the parameter trace, and sends
// a message of n bytes from it. It returns when both devices are closed.
func carry(t *testing.T, trace string, n int) {
	t.Run("connection", func(t *testing.T) {
		p := New(Config{})
		na, nb := newNode(t, p, map[string]string{"trace": trace}), newNode(t, p, nil)
		a, b := na.peer(), nb.peer()
		src, dst := na.memory(n, hw.LocalRead), nb.memory(n, hw.LocalWrite)
		b.recv(dst.sge(0, n))
		join(a, b)
		a.post(hw.SendWR{Op: hw.OpSend, SGL: []hw.SGE{src.sge(0, n)}})
		b.received(0)
		a.end(true)
		b.end(true)
	})
}

// traceFiles are the traces in a directory.
func traceFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.pcapng"))
	require.NoError(t, err)
	return files
}

func TestADirectoryTakesTheTracesOfADevice(t *testing.T) {
	t.Setenv(traceVariable, "")
	dir := filepath.Join(t.TempDir(), "of", "traces")
	carry(t, dir, 100000)
	files := traceFiles(t, dir)
	require.Len(t, files, 1, "one device has the parameter")
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	total := 0
	for _, octets := range streams(t, text) {
		total += len(octets)
	}
	assert.Greater(t, total, 100000)
	if runtime.GOOS != "windows" {
		info, err := os.Stat(files[0])
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "payloads are their user's alone")
	}
}

func TestTheEnvironmentHasAllConnectionsTraced(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(traceVariable, dir)
	carry(t, "", 1000)
	require.Len(t, traceFiles(t, dir), 2, "both devices read the variable")
	other := t.TempDir()
	carry(t, other, 1000)
	require.Len(t, traceFiles(t, dir), 3)
	require.Len(t, traceFiles(t, other), 1, "the parameter takes precedence")
}

func TestADirectoryThatCanNotBeMadeIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := New(Config{}).Open(hw.OpenConfig{Params: map[string]string{"trace": file}})
	require.ErrorIs(t, err, hw.ErrInvalidParameter)
}

func TestAConnectionWhoseTraceCanNotBeMadeWorks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	t.Run("connection", func(t *testing.T) {
		p := New(Config{})
		na, nb := newNode(t, p, map[string]string{"trace": dir}), newNode(t, p, nil)
		require.NoError(t, os.Remove(dir))
		a, b := na.peer(), nb.peer()
		join(a, b)
		a.end(true)
		b.end(true)
	})
}

func TestATraceThatCanNotBeWrittenIsSaidOnce(t *testing.T) {
	dir, said := filepath.Join(t.TempDir(), "gone"), make(chan hw.AsyncEvent, 9)
	opened, err := New(Config{}).Open(hw.OpenConfig{Params: map[string]string{"trace": dir}, Async: func(ev hw.AsyncEvent) { said <- ev }})
	require.NoError(t, err)
	d := opened.(*device)
	require.NoError(t, os.Remove(dir))
	a, b := net.Pipe()
	for range 2 {
		require.Nil(t, d.traceFile(a))
	}
	ev := <-said
	assert.Equal(t, hw.AsyncProviderError, ev.Kind)
	assert.ErrorIs(t, ev.Err, fs.ErrNotExist)
	assert.ErrorContains(t, ev.Err, dir)
	require.Empty(t, said)

	require.NoError(t, os.Mkdir(dir, 0o700))
	d.untraced = sync.Once{}
	w := d.traceFile(a)
	require.NoError(t, w.Close())
	_, err = w.Write([]byte{1}) // as where the file system is full
	require.Error(t, err)
	assert.ErrorIs(t, (<-said).Err, os.ErrClosed)
	require.NoError(t, errors.Join(a.Close(), b.Close(), d.Close()))
}

// dissected has the dissector of captures read a file, where it is installed: it finds the start
// of the connection, right CRCs, those words, and no error.
func dissected(t *testing.T, file string, words ...string) {
	t.Helper()
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		return
	}
	text, err := exec.Command(tshark, "-r", file, "-V", "--disable-heuristic", "rpcrdma_iwarp", "--disable-heuristic", "smb_direct_iwarp").CombinedOutput()
	require.NoError(t, err, string(text))
	said := strings.ToLower(string(text))
	for _, word := range append(words, "request frame header", "reply frame header", "good crc32") {
		assert.True(t, strings.Contains(said, word), word)
	}
	for _, word := range []string{"malformed", "bad crc"} {
		assert.False(t, strings.Contains(said, word), word)
	}
}

// A user sets the variable, and knows of no parameter.
func TestADirectoryThatCantBeMadeIsRefusedByWhatNamesIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	dir := filepath.Join(file, "traces")
	t.Setenv(traceVariable, "")
	_, err := New(Config{}).Open(hw.OpenConfig{Params: map[string]string{"trace": dir}})
	require.ErrorIs(t, err, hw.ErrInvalidParameter)
	require.ErrorContains(t, err, "parameter trace="+strconv.Quote(dir))
	t.Setenv(traceVariable, dir)
	_, err = New(Config{}).Open(hw.OpenConfig{})
	require.ErrorIs(t, err, hw.ErrInvalidParameter)
	require.ErrorContains(t, err, "environment variable GODATTRACE="+strconv.Quote(dir))
	require.NotContains(t, err.Error(), "parameter trace")
}

func TestTsharkReadsATrace(t *testing.T) {
	dir := t.TempDir()
	carry(t, dir, 100000)
	for _, file := range traceFiles(t, dir) {
		dissected(t, file, "opcode: send")
	}
}
