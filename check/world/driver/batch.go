package driver

import (
	"godat/check/world/model"
	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

func init() {
	calls["batch"] = (*driver).batch
	calls["oneshot"] = func(d *driver, c model.Command) (model.Result, error) {
		d.shots = append(d.shots, d.evd(c.Text("evd")).NewOneShot())
		return model.Result{}, nil
	}
	calls["os_wait"] = func(d *driver, c model.Command) (model.Result, error) {
		ev, err := pick(d.shots, 'o', c.On).Wait(past)
		if err != nil {
			return model.Result{}, err
		}
		return model.Result{Events: d.events([]event.Event{ev})}, nil
	}
	calls["os_release"] = func(d *driver, c model.Command) (model.Result, error) {
		if s := pick(d.shots, 'o', c.On); s != nil {
			s.Release()
			d.shots[model.Index('o', c.On)] = nil
		}
		return model.Result{}, nil
	}
}

var ops = map[string]hw.Op{
	"recv": hw.OpRecv, "send": hw.OpSend, "send_inv": hw.OpSendInvalidate, "write": hw.OpWrite, "write_imm": hw.OpWriteImm,
	"read": hw.OpRead, "fetch_add": hw.OpFetchAdd, "cmp_swap": hw.OpCompareSwap,
}

func (d *driver) batch(c model.Command) (model.Result, error) {
	var dtos []ep.DTO
	recvs := false
	for _, op := range c.Batch() {
		recvs = op.Op == "recv"
		dto := ep.DTO{
			Op: ops[op.Op], Flags: hw.Flags(op.Bits("flags", model.Flags)), Cookie: uint64(op.Int("cookie")), Segments: d.local(op),
			Remote: d.remote(op, "remote"), Immediate: uint32(op.Int("imm")),
			Operand: uint64(op.Int("add")), Compare: uint64(op.Int("cmp")), OneShot: d.shot(op.Text("shot")),
		}
		if op.Op == "send_inv" {
			dto.Immediate = dto.Remote.Context
		}
		dtos = append(dtos, dto)
	}
	var n int
	var err error
	if recvs {
		n, err = d.ep(c.On).PostRecvBatch(dtos)
	} else {
		n, err = d.ep(c.On).PostBatch(dtos)
	}
	return values("n", n), err
}

func (d *driver) shot(name string) *evd.OneShot { return pick(d.shots, 'o', name) }
