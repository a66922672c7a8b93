package program

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"godat/runtime/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

func TestACallThatFailsHasATrueReason(t *testing.T) {
	late, ended := context.DeadlineExceeded, rpc.ErrEnded
	busy, failed := &rpc.Error{Code: rpc.CodeBusy}, &rpc.Error{Code: rpc.CodeFailed}
	for _, c := range []struct {
		over, idempotent bool
		method           int
		err              error
		untrue           string
	}{
		{method: echo},
		{method: echo, over: true, err: &rpc.CallError{MayHaveRun: true, Err: late}},
		{method: echo, err: &rpc.CallError{MayHaveRun: true, Err: late}, untrue: "is late"},
		{method: echo, err: &rpc.CallError{MayHaveRun: true, Err: ended}},
		{method: echo, err: &rpc.CallError{Err: busy}},
		{method: echo, idempotent: true, err: &rpc.CallError{MayHaveRun: true, Err: busy}},
		{method: echo, err: &rpc.CallError{MayHaveRun: true, Err: busy}, untrue: "was refused"},
		{method: echo, err: &rpc.CallError{Err: errors.New("something")}, untrue: "has no answer"},
		{method: exits, err: failed},
		{method: twice, err: failed, untrue: "failed"},
		{method: echo, err: errors.New("something"), untrue: "ended by"},
	} {
		if why := untrue(c.over, c.err, c.method, c.idempotent); c.untrue == "" {
			assert.Empty(t, why, "%+v", c)
		} else {
			assert.Contains(t, why, c.untrue, "%+v", c)
		}
	}
}
