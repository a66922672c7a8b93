//go:build !(linux && cgo)

package ibv

import (
	"runtime"

	"godat/hw"
)

func open(hw.OpenConfig, params) (hw.Device, error) {
	why := "RDMA devices need Linux, and this is " + runtime.GOOS
	if runtime.GOOS == "linux" {
		why = "this program was built without cgo: build it with CGO_ENABLED=1 and a C compiler to use RDMA devices"
	}
	return nil, hw.Errorf(opOpen, hw.ProviderNotFound, hw.NoSubtype, "%s", why)
}
