package guest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func testJob() *job {
	cfg := &Config{
		Devices: []string{"rxe0"}, Dir: "/a b", Env: []string{"X=it's"}, CPUs: 2, Memory: 512,
		Forward: []Forward{{7174, 7175}}, Share: []string{"/out"},
	}
	return &job{
		cfg: cfg, kernel: kernel{name: "6.1.0-1-amd64"}, tree: "/cache/tree", secret: "key",
		tools: map[tool]string{modprobe: "/sbin/modprobe", rdma: "/usr/bin/rdma"},
		prog:  "/bin/echo", args: []string{"", "a'b", "$HOME\n"},
	}
}

func TestScriptQuotesEverything(t *testing.T) {
	script := testJob().script()
	assert.Contains(t, script, "export GODAT_GUEST_DEVICE='rxe0'\n")
	assert.Contains(t, script, `export X='it'\''s'`+"\n")
	assert.Contains(t, script, "cd '/a b' || exit 125\n")
	assert.True(t, strings.HasSuffix(script, `exec '/bin/echo' '' 'a'\''b' '$HOME`+"\n"+"' </dev/null\n"), script)
}

func TestSettingsNameEveryVariableOfInit(t *testing.T) {
	settings := testJob().settings()
	for _, line := range []string{
		"SECRET='key'", "KERNEL='6.1.0-1-amd64'", "MODULE_ROOT='/cache/tree'", "MODPROBE='/sbin/modprobe'",
		"RDMA='/usr/bin/rdma'", "DEVICES='rxe0'", "ADDRESS='10.0.2.15'", "SHARES='x'", "BUSY='0'",
	} {
		assert.Contains(t, settings, line+"\n")
	}
	for line := range strings.Lines(settings) {
		name, _, _ := strings.Cut(line, "=")
		assert.Contains(t, string(initScript), "$"+name, "init does not use it")
	}
}

func TestTheMachineGetsItsArguments(t *testing.T) {
	args := strings.Join(testJob().arguments("/tmp/initrd", "/tmp/a,b"), " ")
	for _, want := range []string{
		"-accel tcg,thread=multi", "-smp 2", "-m 512",
		"-kernel /cache/tree/boot/vmlinuz-6.1.0-1-amd64 -initrd /tmp/initrd",
		"-serial file:/tmp/a,,b -serial stdio",
		"hostfwd=tcp:127.0.0.1:7174-:7175",
		"path=/,security_model=none,readonly=on,multidevs=remap",
		"path=/out,security_model=none,readonly=off",
	} {
		assert.Contains(t, args, want)
	}
	assert.NotContains(t, args, "kvm")
}

func TestATapDeviceTakesThePlaceOfTheUserNetwork(t *testing.T) {
	j := testJob()
	j.cfg.Tap, j.cfg.Forward = "tap7", nil
	args := strings.Join(j.arguments("/tmp/initrd", "/tmp/log"), " ")
	assert.Contains(t, args, "-nic tap,model=virtio-net-pci,script=no,downscript=no,ifname=tap7 ")
	assert.NotContains(t, args, "user,")
}

func TestProgramIsFoundFromTheWorkingDirectory(t *testing.T) {
	assert.Equal(t, "echo", resolve("/dir", "echo"), "looked up in PATH")
	assert.Equal(t, "/bin/echo", resolve("/dir", "/bin/echo"))
	assert.Equal(t, "/dir/x.test", resolve("/dir", "./x.test"))
}
