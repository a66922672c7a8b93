package peers

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"godat/check/peers/observer"
	"godat/examples/nvmeof/nvme"
	"godat/mem"
	dat "godat/runtime"
)

// kind is a kind of server.
type kind struct {
	name    string
	pkg     string // below the module's root
	args    func(dir string) []string
	longest int // message that it takes, in bytes

	hello   func(seed uint8, memory mem.RemoteSegment) []byte // private data; nil for none
	request func(asked) []byte
	window  func(private []byte) (mem.RemoteSegment, error) // its memory for a peer
	client  func(ctx context.Context, a *actor) error       // plays a peer by the package of its clients; nil if there is none
	check   func(ctx context.Context, ia *dat.IA, addr string) error
}

var servers = [...]kind{
	{
		name: "kv", pkg: "examples/kv", longest: 4096,
		args:  func(string) []string { return []string{"-provider", device, "-listen", anyPort} },
		hello: callHello, request: callRequest, client: playCalls, check: checkValues,
	},
	{
		name: "blockstore", pkg: "examples/blockstore", longest: 256,
		args: func(dir string) []string {
			return []string{
				"--provider", device, "--listen", anyPort, "--store", filepath.Join(dir, "blocks.db"),
				"--block", fmt.Sprint(limits.Block), "--depth", fmt.Sprint(limits.Slots),
			}
		},
		hello: callHello, request: blockRequest, client: playBlocks, check: checkBlocks,
	},
	{
		name: "connecho", pkg: "check/peers/connecho", longest: 4096,
		args:    func(string) []string { return []string{"-provider", device, "-listen", anyPort} },
		request: echoRequest, window: mem.ParseRemoteSegment, check: checkEcho,
	},
	{
		name: "streamecho", pkg: "check/peers/streamecho", longest: 256,
		args:  func(string) []string { return []string{"-provider", device, "-listen", anyPort} },
		hello: streamHello, request: streamRequest, window: streamWindow, client: playStream, check: checkStream,
	},
	{
		name: "nvmeof", pkg: "examples/nvmeof", longest: nvme.CommandLen + 4096,
		args: func(dir string) []string {
			return []string{
				"--provider", device, "serve", "--listen", anyPort, "--subsystem", subsystem,
				"--disk", "mem:4M", "--disk", filepath.Join(dir, "disk.img") + ":4M",
			}
		},
		hello: nvmeHello, request: nvmeRequest, client: playDisk, check: checkDisk,
	},
}

const (
	device  = "iwarp:127.0.0.1"
	anyPort = "127.0.0.1:0"
)

// build builds the servers into dir, each with the observer in it.
func build(dir string) error {
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	observed := filepath.Join(dir, "observed.go")
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	args := []string{"build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", dir + string(filepath.Separator)}
	for _, k := range servers {
		overlay.Replace[filepath.Join(root, k.pkg, "observed.go")] = observed
		args = append(args, "./"+k.pkg)
	}
	b, err := json.Marshal(overlay)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), b, 0o600)
	}
	if err == nil {
		err = os.WriteFile(observed, []byte("package main\n\nimport _ \"godat/check/peers/observer\"\n"), 0o600)
	}
	if err != nil {
		return err
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the servers: %w\n%s", err, out)
	}
	return nil
}

// server is a running server.
type server struct {
	kind *kind
	addr string
	base observer.Usage // when no peer has come but a well-behaved one

	cmd       *exec.Cmd
	errors    string // the file of its standard error
	questions *os.File
	answers   *os.File
	done      chan struct{} // closed when the process has ended
	err       error         // of the process, once done is closed
}

// start starts a server of a kind that build has put into dir. What it keeps goes to store.
func start(k *kind, dir, store string) (s *server, err error) {
	s = &server{kind: k, errors: filepath.Join(store, "stderr"), done: make(chan struct{})}
	stderr, err := os.Create(s.errors)
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	asked, questions, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer asked.Close()
	answers, answered, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, questions.Close())
	}
	defer answered.Close()
	s.questions, s.answers = questions, answers
	s.cmd = exec.Command(filepath.Join(dir, filepath.Base(k.pkg)), k.args(store)...)
	s.cmd.Env = append(os.Environ(), observer.Env+"=1")
	s.cmd.Stderr, s.cmd.ExtraFiles = stderr, []*os.File{asked, answered}
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, questions.Close(), answers.Close())
	}
	lines := bufio.NewReader(out)
	line, _ := lines.ReadString('\n') // a process that has ended gives none
	words := strings.Fields(line)
	go s.await(lines)
	if len(words) == 0 {
		return nil, errors.Join(errors.New("the server says no address"), s.kill(), s.said())
	}
	s.addr = words[len(words)-1]
	return s, nil
}

// await waits for the end of the process.
func (s *server) await(out io.Reader) {
	defer close(s.done)
	_, _ = io.Copy(io.Discard, out)
	s.err = s.cmd.Wait()
}

// kill ends the process.
func (s *server) kill() error {
	_ = s.cmd.Process.Kill()
	<-s.done
	return errors.Join(s.questions.Close(), s.answers.Close())
}

// stop ends the process in order. It is an error if the process can't.
func (s *server) stop() error {
	_ = s.cmd.Process.Signal(os.Interrupt)
	select {
	case <-s.done:
	case <-time.After(patience):
		_ = s.dump()
		return errors.Join(errors.New("an interrupt does not end it"), s.kill(), s.said())
	}
	return errors.Join(s.err, s.questions.Close(), s.answers.Close())
}

// alive is an error if the process has ended.
func (s *server) alive() error {
	select {
	case <-s.done:
		return fmt.Errorf("%s has ended: %w", s.kind.name, cmp.Or(s.err, errors.New("without an error")))
	default:
		return nil
	}
}

// mostSaid is how much of standard error a failure shows, in bytes.
const mostSaid = 12 << 10

// deadly is how Go's runtime begins to say why it ends a process.
var deadly = regexp.MustCompile(`(?m)^(panic: |fatal error: |unexpected fault |SIG[A-Z]+: )`)

// said is what the server has written to standard error, as an error: why it ended, or its last
// words.
func (s *server) said() error {
	b, err := os.ReadFile(s.errors)
	if err != nil {
		return err
	}
	from := max(0, len(b)-mostSaid)
	if at := deadly.FindIndex(b); at != nil {
		from = at[0]
	}
	return fmt.Errorf("its standard error:\n%s", b[from:min(len(b), from+mostSaid)])
}

// ask asks the observer.
func (s *server) ask(question byte) (u observer.Usage, err error) {
	if _, err = s.questions.Write([]byte{question}); err == nil {
		_ = s.answers.SetReadDeadline(time.Now().Add(patience))
		var b [256]byte
		n, failed := s.answers.Read(b[:]) // a line is shorter, and comes whole
		if err = failed; err == nil {
			err = json.Unmarshal(b[:n], &u)
		}
	}
	return u, err
}

// dump makes the server write its goroutines' stacks to standard error.
func (s *server) dump() error {
	_, err := s.ask(observer.Dump)
	return err
}
