package nvme

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The fields of the Identify page of a controller that NVM Express 1.4 (figure 247) and NVMe
// over Fabrics 1.1 (figure 28) demand of an I/O controller, but for those that may be 0 and are.
func TestTheIdentifyPageHasTheMandatoryFields(t *testing.T) {
	id := Controller{
		Serial: "0123456789", Model: "model", Firmware: "1", ID: 0x1234, Type: ControllerIO, MaxTransfer: 8, AbortLimit: 3, AsyncLimit: 3,
		AsyncEvents: NamespaceNotices | ANANotices, ANATransition: 30, ANAGroups: 128, KeepAliveUnit: 1, MaxCommands: 128, Namespaces: 1024, Commands: HasCompare | HasSelect,
		VolatileCache: true, InCapsule: 4096, Subsystem: "nqn.2026-01.a:b",
	}
	page := encoded(PageLen, id.Put)
	for _, x := range []struct {
		name   string
		at, n  int
		want   uint64
		reason string
	}{
		{"CMIC", 76, 1, 1<<0 | 1<<1 | 1<<3, "the subsystem may have several ports and controllers, and they report ANA"},
		{"MDTS", 77, 1, 8, ""},
		{"CNTLID", 78, 2, 0x1234, ""},
		{"VER", 80, 4, 0x10400, "1.4, as the property VS"},
		{"OAES", 92, 4, 1<<8 | 1<<11, "events of namespaces and of ANA groups"},
		{"CTRATT", 96, 4, 1<<0 | 1<<6, "a host identifier of 128 bits, and any command keeps alive"},
		{"CNTRLTYPE", 111, 1, 1, "an I/O controller"},
		{"OACS", 256, 2, 0, "none of the optional admin commands"},
		{"ACL", 258, 1, 3, ""},
		{"AERL", 259, 1, 3, ""},
		{"FRMW", 260, 1, 1<<1 | 1<<0, "there is at least one firmware slot"},
		{"LPA", 261, 1, 1<<1 | 1<<2, "the log of effects, and long logs"},
		{"ELPE", 262, 1, 0, "an entry of the error log"},
		{"NPSS", 263, 1, 0, "a power state"},
		{"KAS", 320, 2, 1, "Keep Alive is mandatory on fabrics"},
		{"ANATT", 342, 1, 30, "in seconds"},
		{"ANACAP", 343, 1, 0x1f, "all five states"},
		{"ANAGRPMAX", 344, 4, 128, ""},
		{"NANAGRPID", 348, 4, 128, ""},
		{"SQES", 512, 1, 0x66, "64 bytes"},
		{"CQES", 513, 1, 0x44, "16 bytes"},
		{"MAXCMD", 514, 2, 128, "mandatory on fabrics"},
		{"NN", 516, 4, 1024, ""},
		{"ONCS", 520, 2, 1<<0 | 1<<4, ""},
		{"VWC", 525, 1, 1<<0 | 3<<1, "there is one, and whether a Flush may be about all namespaces must be said"},
		{"SGLS", 536, 4, 1<<0 | 1<<2 | 1<<20, ""},
		{"MNAN", 540, 4, 1024, "not 0 with ANA"},
		{"IOCCSZ", 1792, 4, 260, "in 16 bytes"},
		{"IORCSZ", 1796, 4, 1, "in 16 bytes"},
		{"ICDOFF", 1800, 2, 0, ""},
		{"FCATT", 1802, 1, 0, "controllers are dynamic"},
		{"MSDBD", 1803, 1, 1, "a descriptor of a command"},
	} {
		b := make([]byte, 8)
		copy(b, page[x.at:x.at+x.n])
		assert.Equal(t, x.want, binary.LittleEndian.Uint64(b), "%s: %s", x.name, x.reason)
	}
	assert.Equal(t, "0123456789          ", string(page[4:24]), "SN")
	assert.Equal(t, "nqn.2026-01.a:b\x00", string(page[768:784]), "SUBNQN")

	assert.EqualValues(t, 3, encoded(PageLen, (&Namespace{ANAGroup: 3}).Put)[92], "ANAGRPID of a namespace")
	id.ANATransition = 0
	plain := encoded(PageLen, id.Put)
	assert.EqualValues(t, 1<<0|1<<1, plain[76], "CMIC without ANA")
	assert.Equal(t, make([]byte, 10), plain[342:352], "ANATT to NANAGRPID without ANA")
	id.VolatileCache = false
	assert.EqualValues(t, 3<<1, encoded(PageLen, id.Put)[525], "VWC of disks that lose nothing")
	id.Type = ControllerDiscovery
	assert.EqualValues(t, 1<<2, encoded(PageLen, id.Put)[261], "LPA of a discovery controller")
}
