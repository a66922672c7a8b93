package guest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestKernelFaultsAreKnownByTheirReports(t *testing.T) {
	for _, fault := range []string{
		"[   18.405419] kernel BUG at drivers/infiniband/core/iwcm.c:969!",
		"[    7.100000] BUG: kernel NULL pointer dereference, address: 0000000000000008",
		"[   18.408981] Kernel panic - not syncing: Fatal exception",
		"[  242.300000] INFO: task siw_cm_wq:77 blocked for more than 120 seconds.",
		"[  142.300000] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
		"[  142.300000] watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [rping:88]",
	} {
		assert.True(t, kernelFault.MatchString("the end of the console's log:\n[    1.0] hello\n"+fault+"\n"), fault)
	}
	for _, fine := range []string{
		"", "[   12.345678] siw: crc error. in: 00000000, own 12345678, op 0",
		"--- FAIL: TestNoBUG: found", "can't insert siw", "[   99.000000] eth0: link is not ready",
	} {
		assert.False(t, kernelFault.MatchString("the end of the console's log:\n"+fine+"\n"), fine)
	}
}
