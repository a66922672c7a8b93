package target

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
)

// need says what the specification wants of a controller.
type need int

const (
	optional need = iota
	mandatory
	prohibited // or without a meaning there
)

// row is something that a controller may have, by NVM Express 1.4 (figures 139, 191, 244 and
// 271) and NVMe over Fabrics 1.1 (figures 10 to 14), the versions that the target reports.
type row struct {
	name          string
	io, discovery need
	command       nvme.Command
	n             int // bytes of data
	// The target's answers.
	answer, discovers nvme.Status
}

const (
	ok        = nvme.Success
	noOpcode  = nvme.InvalidOpcode
	noField   = nvme.InvalidField
	noLog     = nvme.InvalidLogPage
	noDisk    = nvme.InvalidNamespace
	fromStart = 0
)

func adminOf(op nvme.Opcode) nvme.Command { return nvme.Command{Opcode: op} }

// logOf is a Get Log Page of a page from its beginning.
func logOf(p nvme.LogPage, n uint32) nvme.Command { return nvme.GetLogPage(p, fromStart, n) }

// rows are all that 1.4 knows, and the mandatory parts of 2.0, whose pages have no meaning
// for hosts of a controller of 1.4.
var rows = []row{
	{"Keep Alive", mandatory, optional, adminOf(nvme.AdminKeepAlive), 0, ok, ok},
	{"Abort", mandatory, optional, nvme.Abort(7, 7), 0, ok, ok},
	{"Identify", mandatory, mandatory, nvme.Identify(nvme.IdentifyControllerPage, 0), 4096, ok, ok},
	{"Delete I/O Submission Queue", prohibited, prohibited, adminOf(0x00), 0, noOpcode, noOpcode},
	{"Create I/O Submission Queue", prohibited, prohibited, adminOf(0x01), 0, noOpcode, noOpcode},
	{"Delete I/O Completion Queue", prohibited, prohibited, adminOf(0x04), 0, noOpcode, noOpcode},
	{"Create I/O Completion Queue", prohibited, prohibited, adminOf(0x05), 0, noOpcode, noOpcode},
	{"Namespace Management", optional, prohibited, adminOf(0x0d), 0, noOpcode, noOpcode},
	{"Firmware Commit", optional, prohibited, adminOf(0x10), 0, noOpcode, noOpcode},
	{"Firmware Image Download", optional, prohibited, adminOf(0x11), 0, noOpcode, noOpcode},
	{"Device Self-test", optional, prohibited, adminOf(0x14), 0, noOpcode, noOpcode},
	{"Namespace Attachment", optional, prohibited, adminOf(0x15), 0, noOpcode, noOpcode},
	{"Directive Send", optional, prohibited, adminOf(0x19), 0, noOpcode, noOpcode},
	{"Directive Receive", optional, prohibited, adminOf(0x1a), 0, noOpcode, noOpcode},
	{"Virtualization Management", optional, prohibited, adminOf(0x1c), 0, noOpcode, noOpcode},
	{"NVMe-MI Send", optional, prohibited, adminOf(0x1d), 0, noOpcode, noOpcode},
	{"NVMe-MI Receive", optional, prohibited, adminOf(0x1e), 0, noOpcode, noOpcode},
	{"Doorbell Buffer Config", prohibited, prohibited, adminOf(0x7c), 0, noOpcode, noOpcode},
	{"Format NVM", optional, prohibited, adminOf(0x80), 0, noOpcode, noOpcode},
	{"Security Send", optional, prohibited, adminOf(0x81), 0, noOpcode, noOpcode},
	{"Security Receive", optional, prohibited, adminOf(0x82), 0, noOpcode, noOpcode},
	{"Sanitize", optional, prohibited, adminOf(0x84), 0, noOpcode, noOpcode},
	{"Get LBA Status", optional, prohibited, adminOf(0x86), 0, noOpcode, noOpcode},

	{"CNS 00h, namespace", mandatory, prohibited, nvme.Identify(nvme.IdentifyNamespacePage, 1), 4096, ok, noDisk},
	{"CNS 00h, an inactive namespace", mandatory, prohibited, nvme.Identify(nvme.IdentifyNamespacePage, 77), 4096, ok, noDisk},
	{"CNS 00h, all namespaces, without namespace management", mandatory, prohibited, nvme.Identify(nvme.IdentifyNamespacePage, nvme.AllNamespaces), 4096, noDisk, noDisk},
	{"CNS 00h, no namespace", mandatory, prohibited, nvme.Identify(nvme.IdentifyNamespacePage, 0), 4096, noDisk, noDisk},
	{"CNS 00h, an id that is invalid", mandatory, prohibited, nvme.Identify(nvme.IdentifyNamespacePage, mostNamespaces+1), 4096, noDisk, noDisk},
	{"CNS 01h, controller", mandatory, mandatory, nvme.Identify(nvme.IdentifyControllerPage, 0), 4096, ok, ok},
	{"CNS 02h, active namespaces", mandatory, prohibited, nvme.Identify(nvme.IdentifyActiveList, 0), 4096, ok, ok},
	{"CNS 02h, above an id that is invalid", mandatory, prohibited, nvme.Identify(nvme.IdentifyActiveList, nvme.AllNamespaces-1), 4096, noDisk, noDisk},
	{"CNS 03h, descriptors", mandatory, prohibited, nvme.Identify(nvme.IdentifyDescriptors, 1), 4096, ok, noDisk},
	{"CNS 03h, an inactive namespace", mandatory, prohibited, nvme.Identify(nvme.IdentifyDescriptors, 77), 4096, noDisk, noDisk},
	{"CNS 04h, NVM sets", optional, prohibited, nvme.Identify(0x04, 0), 4096, noField, noField},
	{"CNS 06h, controller of the command set (2.0, Linux asks for it)", optional, prohibited, nvme.Identify(nvme.IdentifyCommandSet, 0), 4096, ok, ok},
	{"CNS 08h, namespace of any command set (2.0)", optional, prohibited, nvme.Identify(0x08, 1), 4096, noField, noField},
	{"CNS 10h, allocated namespaces", optional, prohibited, nvme.Identify(0x10, 0), 4096, noField, noField},
	{"CNS 11h, allocated namespace", optional, prohibited, nvme.Identify(0x11, 1), 4096, noField, noField},
	{"CNS 12h, controllers of a namespace", optional, prohibited, nvme.Identify(0x12, 1), 4096, noField, noField},
	{"CNS 13h, controllers", optional, prohibited, nvme.Identify(0x13, 0), 4096, noField, noField},
	{"CNS 14h, primary controller", optional, prohibited, nvme.Identify(0x14, 0), 4096, noField, noField},
	{"CNS 15h, secondary controllers", optional, prohibited, nvme.Identify(0x15, 0), 4096, noField, noField},
	{"CNS 16h, namespace granularity", optional, prohibited, nvme.Identify(0x16, 0), 4096, noField, noField},
	{"CNS 17h, UUIDs", optional, prohibited, nvme.Identify(0x17, 0), 4096, noField, noField},
	{"CNS 1Ch, I/O command sets (2.0)", optional, prohibited, nvme.Identify(0x1c, 0), 4096, noField, noField},

	{"log 00h, supported pages (2.0)", optional, optional, logOf(0x00, 1024), 1024, noLog, noLog},
	{"log 01h, errors", mandatory, prohibited, logOf(nvme.LogErrors, 64), 64, ok, noLog},
	{"log 02h, health", mandatory, prohibited, logOf(nvme.LogHealth, 512), 512, ok, noLog},
	{"log 03h, firmware slots", mandatory, prohibited, logOf(nvme.LogFirmware, 512), 512, ok, noLog},
	{"log 04h, changed namespaces", optional, prohibited, logOf(nvme.LogChangedNamespaces, 4096), 4096, ok, noLog},
	{"log 05h, commands and effects", optional, prohibited, logOf(nvme.LogEffects, 4096), 4096, ok, noLog},
	{"log 06h, self-test", optional, prohibited, logOf(0x06, 564), 564, noLog, noLog},
	{"log 07h, telemetry of the host", optional, prohibited, logOf(0x07, 512), 512, noLog, noLog},
	{"log 08h, telemetry of the controller", optional, prohibited, logOf(0x08, 512), 512, noLog, noLog},
	{"log 09h, endurance group", optional, prohibited, logOf(0x09, 512), 512, noLog, noLog},
	{"log 0Ah, predictable latency", optional, prohibited, logOf(0x0a, 512), 512, noLog, noLog},
	{"log 0Bh, events of predictable latency", optional, prohibited, logOf(0x0b, 512), 512, noLog, noLog},
	{"log 0Ch, asymmetric access", optional, prohibited, logOf(0x0c, 512), 512, ok, noLog},
	{"log 0Dh, persistent events", optional, prohibited, logOf(0x0d, 512), 512, noLog, noLog},
	{"log 0Eh, LBA status", optional, prohibited, logOf(0x0e, 512), 512, noLog, noLog},
	{"log 0Fh, events of endurance groups", optional, prohibited, logOf(0x0f, 512), 512, noLog, noLog},
	{"log 12h, features and effects (2.0)", optional, prohibited, logOf(0x12, 1024), 1024, noLog, noLog},
	{"log 70h, discovery", prohibited, mandatory, logOf(nvme.LogDiscovery, 2048), 2048, noLog, ok},
	{"log 80h, reservations", optional, prohibited, logOf(0x80, 64), 64, noLog, noLog},
	{"log 81h, sanitize", optional, prohibited, logOf(0x81, 512), 512, noLog, noLog},

	{"feature 01h, arbitration", mandatory, prohibited, nvme.GetFeature(nvme.FeatureArbitration), 0, ok, noField},
	{"feature 02h, power", mandatory, prohibited, nvme.GetFeature(nvme.FeaturePower), 0, ok, noField},
	{"feature 03h, LBA ranges", optional, prohibited, nvme.GetFeature(0x03), 0, noField, noField},
	{"feature 04h, temperature", mandatory, prohibited, nvme.GetFeature(nvme.FeatureTemperature), 0, ok, noField},
	{"feature 05h, error recovery", mandatory, prohibited, nvme.GetFeature(nvme.FeatureErrorRecovery), 0, ok, noField},
	{"feature 06h, volatile write cache, where there is one", mandatory, prohibited, nvme.GetFeature(nvme.FeatureVolatileCache), 0, ok, noField},
	{"feature 07h, queues", mandatory, prohibited, nvme.GetFeature(nvme.FeatureQueues), 0, ok, noField},
	{"feature 08h, interrupts together", prohibited, prohibited, nvme.GetFeature(0x08), 0, noField, noField},
	{"feature 09h, interrupt vectors", prohibited, prohibited, nvme.GetFeature(0x09), 0, noField, noField},
	{"feature 0Ah, write atomicity", mandatory, prohibited, nvme.GetFeature(nvme.FeatureWriteAtomicity), 0, ok, noField},
	{"feature 0Bh, events", mandatory, optional, nvme.GetFeature(nvme.FeatureAsyncEvents), 0, ok, ok},
	{"feature 0Ch, power states by itself", optional, prohibited, nvme.GetFeature(0x0c), 0, noField, noField},
	{"feature 0Dh, host memory buffer", prohibited, prohibited, nvme.GetFeature(0x0d), 0, noField, noField},
	{"feature 0Eh, timestamp", optional, prohibited, nvme.GetFeature(0x0e), 0, noField, noField},
	{"feature 0Fh, Keep Alive", mandatory, optional, nvme.GetFeature(nvme.FeatureKeepAlive), 0, ok, ok},
	{"feature 10h, thermal management by the host", optional, prohibited, nvme.GetFeature(0x10), 0, noField, noField},
	{"feature 81h, host identifier of 64 bits", prohibited, prohibited, nvme.GetFeature(nvme.FeatureHostID), 0, noField, noField},

	{"property CAP", mandatory, mandatory, nvme.PropertyGet(nvme.PropertyCAP), 0, ok, ok},
	{"property VS", mandatory, mandatory, nvme.PropertyGet(nvme.PropertyVS), 0, ok, ok},
	{"property CC", mandatory, mandatory, nvme.PropertyGet(nvme.PropertyCC), 0, ok, ok},
	{"property CSTS", mandatory, mandatory, nvme.PropertyGet(nvme.PropertyCSTS), 0, ok, ok},
	{"property NSSR, subsystem reset", optional, optional, nvme.PropertyGet(0x20), 0, noField, noField},
}

func TestAControllerHasAllThatTheSpecificationDemands(t *testing.T) {
	onEach(t, func(f *fixture) {
		io, discovery := f.connect(nil), f.connect(func(cfg *host.Config) { cfg.Subsystem = "" })
		check := func(c *host.Controller, r *row, n need, want nvme.Status) {
			_, err := c.Admin(f.within(), r.command, make([]byte, r.n))
			if want == nvme.Success {
				require.NoError(f, err, r.name)
			} else {
				require.ErrorIs(f, err, nvme.StatusError(want), r.name)
			}
			if n == mandatory && want != noDisk { // which is what is due for an id of no namespace
				assert.Equal(f, nvme.Success, want, "%s is mandatory", r.name)
			}
		}
		for i := range rows {
			check(io, &rows[i], rows[i].io, rows[i].answer)
			check(discovery, &rows[i], rows[i].discovery, rows[i].discovers)
		}
		for _, c := range []*host.Controller{io, discovery} {
			rest(f, c, nvme.AdminGetLogPage, noLog, func(n byte) (nvme.Command, int) { return logOf(nvme.LogPage(n), 512), 512 })
			rest(f, c, nvme.AdminIdentify, noField, func(n byte) (nvme.Command, int) { return nvme.Identify(nvme.Selector(n), 1), 4096 })
			rest(f, c, nvme.AdminGetFeatures, noField, func(n byte) (nvme.Command, int) { return nvme.GetFeature(nvme.Feature(n)), 0 })
			rest(f, c, nvme.AdminSetFeatures, noField, func(n byte) (nvme.Command, int) { return nvme.SetFeature(nvme.Feature(n), 0), 0 })
			for op := range 256 {
				if op := nvme.Opcode(op); op != nvme.OpFabrics && op != nvme.AdminAsyncEvent && !known(op, 0) {
					_, err := c.Admin(f.within(), adminOf(op), nil)
					require.ErrorIs(f, err, nvme.StatusError(noOpcode), "opcode %#x", op)
				}
			}
		}
	})
}

func TestAnIOQueueHasTheMandatoryCommands(t *testing.T) {
	f := start(t, "loop", nil)
	d := f.disk(f.connect(nil), 1)
	rows := map[nvme.Opcode]struct {
		name string
		n    int // bytes of data
	}{
		nvme.IOFlush:       {"Flush, mandatory", 0},
		nvme.IOWrite:       {"Write, mandatory", 4096},
		nvme.IORead:        {"Read, mandatory", 4096},
		nvme.IOCompare:     {"Compare, optional", 4096},
		nvme.IOWriteZeroes: {"Write Zeroes, optional", 0},
		nvme.IODataset:     {"Dataset Management, optional", 16},
	}
	for op := range int(nvme.OpFabrics) { // those above are reserved, or a vendor's
		r, has := rows[nvme.Opcode(op)]
		_, err := d.Do(f.within(), d.Command(nvme.Opcode(op)), make([]byte, r.n))
		if has {
			require.NoError(t, err, r.name)
		} else { // Write Uncorrectable, Verify, reservations and Copy, which are optional, among them
			require.ErrorIs(t, err, nvme.StatusError(noOpcode), "opcode %#x", op)
		}
	}
}

// known reports whether a row has an opcode, or a command of that opcode with the low byte n.
func known(op nvme.Opcode, n byte) bool {
	for _, r := range rows {
		if r.command.Opcode == op && (n == 0 || byte(r.command.CDW10) == n) {
			return true
		}
	}
	return op == nvme.AdminSetFeatures && (n == 0 || known(nvme.AdminGetFeatures, n)) || op == nvme.AdminGetFeatures && n == 0
}

// rest asks for all that no row has.
func rest(f *fixture, c *host.Controller, op nvme.Opcode, want nvme.Status, command func(n byte) (nvme.Command, int)) {
	f.Helper()
	for n := 1; n < 256; n++ {
		if known(op, byte(n)) {
			continue
		}
		command, size := command(byte(n))
		_, err := c.Admin(f.within(), command, make([]byte, size))
		require.ErrorIs(f, err, nvme.StatusError(want), "opcode %#x, %#x", op, n)
	}
}
