package commands

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// step is a command of a talk, as key has it.
type step struct {
	text   string
	also   string // further options, which make it short or small
	says   string // a regular expression of what it prints; of a server before the next step
	status int
	makes  string   // the file that it makes anew, of which the talk has put the contents
	serves bool     // it runs until the talk ends
	ends   bool     // the servers before it have been ended first
	until  bool     // again and again, until it says so
	with   []string // old and new words, as this machine is not the page's
}

// talks are pages' servers with the clients that the pages print beside them. Addresses of pages become free
// ports of loopback, and their directories become some of the test's own.
var talks = []struct {
	name  string
	steps []step
}{
	{"keys", []step{
		{text: "go run ./examples/kv --listen 127.0.0.1:7000", says: `127`, serves: true},
		{text: "go run ./examples/kv --addr 127.0.0.1:7000 put k v"},
		{text: "go run ./examples/kv --addr 127.0.0.1:7000 get k", says: `^v\n$`},
	}},
	{"objects, as README has them", []step{
		{text: "go run ./examples/objects --listen 127.0.0.1:7001", says: `127`, serves: true},
		{text: "go run ./examples/objects --addr 127.0.0.1:7001 put NAME FILE"},
		{text: "go run ./examples/objects --addr 127.0.0.1:7001 get NAME FILE", makes: "file"},
	}},
	{"objects", []step{
		{text: "go run ./examples/objects --listen 127.0.0.1:7000 --dir store", says: `127`, serves: true},
		{text: "go run ./examples/objects --addr 127.0.0.1:7000 put notes/today /etc/services"},
		{text: "go run ./examples/objects --addr 127.0.0.1:7000 get notes/today part 100 50"},
		{text: "go run ./examples/objects --addr 127.0.0.1:7000 list", says: `notes/today`},
	}},
	{"a disk, as README has it", []step{
		{text: "go run ./examples/nvmeof serve --disk disk.img:10G", also: "--provider iwarp:127.0.0.1 --listen 127.0.0.1:4420", says: `disk 1: `, serves: true},
	}},
	{"a disk", []step{
		{text: "./nvmeof --provider iwarp:10.0.0.1 serve --listen 10.0.0.1:4420 --disk disk.img:10G", says: `disk 1: `, serves: true},
		{text: "./nvmeof --provider iwarp:10.0.0.1 discover 10.0.0.1:4420", says: `nqn\.`},
		{text: "./nvmeof bench 10.0.0.1:4420", also: "--time 100ms", says: `write`},
	}},
	{"two paths to a disk", []step{
		{text: "./nvmeof --provider iwarp:10.0.0.1 serve --listen 10.0.0.1:4420 --elsewhere 10.0.0.1:4421 --controllers 1-999 --shared --ana a --disk disk.img:10G", says: `disk 1: `, serves: true},
		{text: "./nvmeof --provider iwarp:10.0.0.1 serve --listen 10.0.0.1:4421 --elsewhere 10.0.0.1:4420 --controllers 1000-1999 --shared --ana b --disk disk.img:10G", says: `disk 1: `, serves: true},
	}},
	{"bench over TCP", []step{
		{text: "go run ./bench serve", also: "--provider iwarp:127.0.0.1 --port 7471", says: `serving`, serves: true},
		{text: "go run ./bench dial HOST:7471", also: "--provider iwarp:127.0.0.1 " + short, status: 4},
	}},
	{"a blockstore", []step{
		{text: "go run ./examples/blockstore", also: "--dir SOURCES"},
	}},
	{"a volume", []step{
		{text: volume + "go run . serve --create --id 1 --peers $P --listen 127.0.0.1:4421 --data /tmp/v1 --size 256M", also: "--size 32M", says: `serves hosts`, serves: true},
		{text: volume + "go run . serve --create --id 2 --peers $P --listen 127.0.0.1:4422 --data /tmp/v2 --token /tmp/v1/token", says: `serves hosts`, serves: true},
		{text: volume + "go run . serve --create --id 3 --peers $P --listen 127.0.0.1:4423 --data /tmp/v3 --token /tmp/v1/token", says: `serves hosts`, serves: true},
		{text: volume + "volume status 127.0.0.1:7001", says: `copies: 3 of 3`, until: true},
		{text: volume + "volume transfer ADDR ID", with: []string{"ADDR ID", "127.0.0.1:7001 1"}, until: true},
		{text: volume + "volume check ADDR", with: []string{"ADDR", "127.0.0.1:7001"}},
		{text: volume + "go run ../nvmeof discover 127.0.0.1:4421", says: `nqn\.`},
		{text: volume + "go run ../nvmeof bench 127.0.0.1:4421 --time 1s", says: `write`},
		{text: volume + "go run . serve --data /tmp/v1 --listen 127.0.0.1:4421", says: `serves hosts`, serves: true, ends: true},
	}},
	{"several volumes", []step{
		{text: volume + "go run . create --id 1 --peers 1=127.0.0.1:7001,2=127.0.0.1:7002,3=127.0.0.1:7003 --data /tmp/a1 --size 256M", also: "--size 32M"},
		{text: volume + "go run . create --id 1 --peers 1=127.0.0.1:7101,2=127.0.0.1:7102,3=127.0.0.1:7103 --data /tmp/b1 --size 1G --namespace 2 --beside /tmp/a1/token", also: "--size 32M"},
		{text: volume + "go run . serve --data /tmp/a1 --data /tmp/b1 --listen 127.0.0.1:4421", says: `serves hosts`, serves: true},
	}},
	{"a volume's machines are replaced, lost and restored", []step{
		{text: first, also: "--size 64M", with: []string{"DIR", "/tmp/token1"}, says: `serves hosts`, serves: true},
		{text: first, also: "--token /tmp/token1/token", with: []string{"DIR", "/tmp/v2", "--id 1", "--id 2", "--listen 10.0.0.1", "--listen 10.0.0.2", " --size 10G", ""}, says: `serves hosts`, serves: true},
		{text: first, also: "--token /tmp/token1/token", with: []string{"DIR", "/tmp/v3", "--id 1", "--id 3", "--listen 10.0.0.1", "--listen 10.0.0.3", " --size 10G", ""}, says: `serves hosts`, serves: true},
		{text: volume + "volume status 10.0.0.1:7000", says: `copies: 3 of 3`, until: true},
		{text: volume + "volume serve --create --join --id 4 --peers 1=10.0.0.1:7000,2=10.0.0.2:7000,4=10.0.0.4:7000 --listen 10.0.0.4:4420 --data /var/volume --token ./token", with: []string{"./token", "/tmp/token1/token"}, says: `serves hosts`, serves: true},
		{text: volume + "volume replace 10.0.0.1:7000 3 4 10.0.0.4:7000"},
		{text: volume + "volume recover /var/volume", status: 1, ends: true},
		{text: volume + "volume recover /var/volume --force"},
		{text: volume + "volume serve --data /var/volume --listen 10.0.0.1:4420", says: `serves hosts`, serves: true},
		{text: "cp -a --sparse=always /var/volume /backup/volume", ends: true},
		{text: volume + "volume recover /backup/volume --at 10.0.0.9:7000 --force"},
		{text: volume + "volume serve --data /backup/volume --listen 10.0.0.9:4420", says: `serves hosts`, serves: true},
	}},
}

const (
	put    = "what was put"
	volume = "cd examples/volume && "
	first  = volume + "volume serve --create --id 1 --peers 1=10.0.0.1:7000,2=10.0.0.2:7000,3=10.0.0.3:7000 --listen 10.0.0.1:4420 --data DIR --size 10G"
)

var address = regexp.MustCompile(`\b(?:\d+\.\d+\.\d+\.\d+|HOST):\d+\b`)

// TestTheServersOfPagesAnswerThePrintedClients runs each printed server, and the printed commands of its clients.
func TestTheServersOfPagesAnswerThePrintedClients(t *testing.T) {
	if !*runAll {
		return
	}
	p := &programs{dir: t.TempDir()}
	for _, talk := range talks {
		t.Run(talk.name, func(t *testing.T) {
			h := &host{programs: p, dir: t.TempDir(), ports: make(map[string]string)}
			defer h.end(t)
			require.NoError(t, os.WriteFile(filepath.Join(h.dir, "file"), []byte(put), 0o600))
			for _, name := range []string{"a", "b"} {
				require.NoError(t, os.WriteFile(filepath.Join(h.dir, name), []byte("optimized\n"), 0o600))
			}
			for _, s := range talk.steps {
				h.step(t, s)
			}
		})
	}
}

// host is where a talk takes place.
type host struct {
	*programs
	dir     string
	ports   map[string]string // by the addresses of pages
	running []*server
}

// server is a command that runs until the talk is over.
type server struct {
	cmd  *exec.Cmd
	text string
	said
}

// said is what a command has written so far.
type said struct {
	mu  sync.Mutex
	buf bytes.Buffer // mu guards it
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// free is the address on this machine that stands for a page's.
func (h *host) free(t *testing.T, page string) string {
	if h.ports[page] == "" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		h.ports[page] = l.Addr().String()
		require.NoError(t, l.Close())
	}
	return h.ports[page]
}

// further is a command with further options, each in the place of the command's own, since a program takes an option once.
func further(text, also string) string {
	words := strings.Fields(text)
	for word := range strings.FieldsSeq(also) {
		if i := slices.Index(words, word); i >= 0 && strings.HasPrefix(word, "--") {
			words = slices.Delete(words, i, i+2)
		}
	}
	return strings.Join(append(words, also), " ")
}

func TestAFurtherOptionIsInThePlaceOfTheCommandsOwn(t *testing.T) {
	for want, given := range map[string][2]string{
		"go run . --id 1 --size 32M":  {"go run . --id 1 --size 256M", "--size 32M"},
		"go run . --id 1 --time 1s":   {"go run .  --time 3s --id 1", "--time 1s"},
		"a && b --id 1 --repeats 1":   {"a && b --id 1", "--repeats 1"},
		"go run . --list --size 64M ": {"go run . --list --size 64M", ""},
	} {
		assert.Equal(t, want, further(given[0], given[1]))
	}
}

// command makes the command of a step, and says the file that its output goes to, if it names one.
func (h *host) command(t *testing.T, s step) (cmd *exec.Cmd, out string) {
	text, dir := further(strings.NewReplacer(s.with...).Replace(s.text), s.also), "."
	if rest, is := strings.CutPrefix(text, "cd "); is {
		dir, text, _ = strings.Cut(rest, " && ")
	}
	text = strings.ReplaceAll(text, "$P", "1=127.0.0.1:7001,2=127.0.0.1:7002,3=127.0.0.1:7003")
	text = address.ReplaceAllStringFunc(text, func(at string) string { return h.free(t, at) })
	text = strings.NewReplacer("10.0.0.1", "127.0.0.1", "--port 7471", "--port "+h.free(t, "HOST:7471")[len("127.0.0.1:"):],
		"NAME", "a/name", "FILE", filepath.Join(h.dir, "file"), "/tmp/", h.dir+"/", "/var/volume", h.dir+"/volume", "/backup/", h.dir+"/backup-",
		"SOURCES", filepath.Join(absolute(t), "mem")).Replace(text)
	if i := strings.Index(text, " >"); i >= 0 {
		out, text = text[i+2:], text[:i]
	}
	args := strings.Fields(text)
	switch args[0] {
	case "go":
		if args[1] == "run" {
			args = append([]string{h.build(t, dir, args[2])}, args[3:]...)
		}
	case "./nvmeof":
		args[0] = h.build(t, ".", "./examples/nvmeof")
	case "volume":
		args[0] = h.build(t, "examples/volume", ".")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd = exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = h.dir
	if args[0] == "go" {
		cmd.Dir = filepath.Join(absolute(t), dir)
	}
	return cmd, out
}

func absolute(t *testing.T) string {
	dir, err := filepath.Abs(root)
	require.NoError(t, err)
	return dir
}

// step runs a command to its end, or until it serves.
func (h *host) step(t *testing.T, s step) {
	if s.ends {
		h.end(t)
	}
	cmd, file := h.command(t, s)
	r := &server{cmd: cmd, text: s.text}
	cmd.Stdout, cmd.Stderr = &r.said, &r.said
	if file != "" {
		f, err := os.Create(filepath.Join(h.dir, file))
		require.NoError(t, err)
		defer f.Close()
		cmd.Stdout = f
	}
	if s.serves {
		require.NoError(t, cmd.Start())
		h.running = append(h.running, r)
		require.Eventually(t, func() bool { return regexp.MustCompile(s.says).MatchString(r.String()) }, time.Minute, 20*time.Millisecond, "%s does not say %s", s.text, s.says)
		return
	}
	if s.makes != "" {
		require.NoError(t, os.Remove(filepath.Join(h.dir, s.makes)))
	}
	_ = cmd.Run()
	for last := time.Now().Add(time.Minute); s.until && time.Now().Before(last) && (cmd.ProcessState.ExitCode() != 0 || !regexp.MustCompile(s.says).MatchString(r.String())); {
		time.Sleep(100 * time.Millisecond) // as the page's loop of the shell does
		cmd, _ = h.command(t, s)
		r = &server{cmd: cmd, text: s.text}
		cmd.Stdout, cmd.Stderr = &r.said, &r.said
		_ = cmd.Run()
	}
	assert.Contains(t, []int{0, s.status}, cmd.ProcessState.ExitCode(), "%s: %s", s.text, r.String())
	assert.Regexp(t, s.says, r.String(), s.text)
	if s.makes != "" {
		made, err := os.ReadFile(filepath.Join(h.dir, s.makes))
		assert.NoError(t, err)
		assert.Equal(t, put, string(made), s.text)
	}
}

// terminate ends a process as a supervisor does.
func terminate(p *os.Process) error {
	if exe != "" { // Windows has no signals
		return p.Kill()
	}
	return p.Signal(syscall.SIGTERM)
}

// end ends the servers as a supervisor does.
func (h *host) end(t *testing.T) {
	for _, s := range h.running {
		assert.NoError(t, terminate(s.cmd.Process), s.text)
	}
	for _, s := range h.running {
		assert.NoError(t, s.cmd.Wait(), "%s: %s", s.text, s.String())
	}
	h.running = nil
}

// TestTheMeasuringCommandsOfPagesRun runs each with options that make it short.
func TestTheMeasuringCommandsOfPagesRun(t *testing.T) {
	if !*runAll {
		return
	}
	h := &host{programs: &programs{dir: t.TempDir()}, dir: t.TempDir(), ports: make(map[string]string)}
	for text, also := range measures {
		began := time.Now()
		h.step(t, step{text: text, also: also, status: 4})
		t.Log(fmt.Sprintf("%5.1f s", time.Since(began).Seconds()), text)
	}
}
