package runtime

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/mem"
)

// objects are objects of each kind on one adapter.
type objects struct {
	ia   *IA
	pz   *mem.PZ
	d    *evd.Dispatcher
	cno  *evd.CNO
	ep   *ep.Endpoint
	srq  *ep.SRQ
	lmr  *mem.LMR
	rmr  *mem.RMR
	shot *evd.OneShot
}

func newObjects(t *testing.T, provider string) (o objects) {
	t.Helper()
	o.ia = open(t, provider)
	var err error
	o.pz, err = o.ia.NewPZ()
	require.NoError(t, err)
	o.d, err = o.ia.NewDispatcher(evd.Config{QLen: 64})
	require.NoError(t, err)
	o.cno, err = o.ia.NewCNO(evd.CNOConfig{})
	require.NoError(t, err)
	o.ep, err = o.ia.NewEndpoint(ep.Config{PZ: o.pz, Recv: o.d, Request: o.d, Conn: o.d})
	require.NoError(t, err)
	o.srq, err = o.ia.NewSRQ(o.pz, 0, 0)
	require.NoError(t, err)
	o.lmr, err = o.pz.Alloc(64, hw.AllPrivileges)
	require.NoError(t, err)
	o.rmr, err = o.pz.NewRMR()
	require.NoError(t, err)
	o.shot = o.d.NewOneShot()
	return o
}

func TestObjectsOfAnotherAdapterAreRefused(t *testing.T) {
	for _, provider := range []string{"loop", "iwarp"} {
		own, foreign := newObjects(t, provider), newObjects(t, provider)
		endpoint := func(cfg ep.Config) error {
			e, err := own.ia.NewEndpoint(cfg)
			assert.Nil(t, e)
			return err
		}
		connected := connect(t, own.ia, evd.Config{QLen: 64})
		connected.establish(t)
		request := func() *ep.CR {
			psp, err := own.ia.NewPSP(ep.PSPConfig{Dispatcher: own.d})
			require.NoError(t, err)
			defer func() { require.NoError(t, psp.Close()) }()
			e, err := own.ia.NewEndpoint(ep.Config{PZ: own.pz, Conn: connected.events})
			require.NoError(t, err)
			require.NoError(t, e.Connect(ep.ConnectConfig{Addr: own.ia.Attr().Address, Qual: psp.Qual()}))
			for ev := range own.d.Events(t.Context()) {
				return ep.RequestOf(ev)
			}
			return nil
		}
		for name, tc := range map[string]struct {
			sub  hw.Subtype
			call func() error
		}{
			"the zone of an endpoint":       {hw.HandlePZ, func() error { return endpoint(ep.Config{PZ: foreign.pz}) }},
			"a receive dispatcher":          {hw.HandleEVDRecv, func() error { return endpoint(ep.Config{PZ: own.pz, Recv: foreign.d}) }},
			"a request dispatcher":          {hw.HandleEVDRequest, func() error { return endpoint(ep.Config{PZ: own.pz, Request: foreign.d}) }},
			"a connection dispatcher":       {hw.HandleEVDConn, func() error { return endpoint(ep.Config{PZ: own.pz, Conn: foreign.d}) }},
			"a shared queue":                {hw.HandleSRQ, func() error { return endpoint(ep.Config{PZ: own.pz, SRQ: foreign.srq, Attr: &ep.Attr{}}) }},
			"the zone of a shared queue":    {hw.HandlePZ, func() error { _, err := own.ia.NewSRQ(foreign.pz, 0, 0); return err }},
			"another zone":                  {hw.HandlePZ, func() error { return own.ep.Modify(ep.Param{PZ: foreign.pz}, "PZ") }},
			"another receive dispatcher":    {hw.HandleEVDRecv, func() error { return own.ep.Modify(ep.Param{Recv: foreign.d}, "Recv") }},
			"another request dispatcher":    {hw.HandleEVDRequest, func() error { return own.ep.Modify(ep.Param{Request: foreign.d}, "Request") }},
			"another connection dispatcher": {hw.HandleEVDConn, func() error { return own.ep.Modify(ep.Param{Conn: foreign.d}, "Conn") }},
			"the first zone of an endpoint that a service point made": {hw.HandlePZ, func() error {
				psp, err := own.ia.NewPSP(ep.PSPConfig{Dispatcher: own.d, Flags: ep.PSPProvider})
				require.NoError(t, err)
				defer func() { require.NoError(t, psp.Close()) }()
				e, err := own.ia.NewEndpoint(ep.Config{PZ: own.pz, Conn: connected.events})
				require.NoError(t, err)
				require.NoError(t, e.Connect(ep.ConnectConfig{Addr: own.ia.Attr().Address, Qual: psp.Qual()}))
				for ev := range own.d.Events(t.Context()) {
					p, err := ep.RequestOf(ev).Query()
					require.NoError(t, err)
					err = p.Endpoint.Modify(ep.Param{PZ: foreign.pz}, "PZ")
					require.NoError(t, ep.RequestOf(ev).Reject(nil))
					return err
				}
				return nil
			}},
			"the dispatcher of a service point": {hw.HandleEVDCR, func() error { _, err := own.ia.NewPSP(ep.PSPConfig{Dispatcher: foreign.d}); return err }},
			"the dispatcher of a common service point": {hw.HandleEVDCR, func() error {
				_, err := own.ia.NewCSP(ep.CSPConfig{Address: "127.0.0.1:0", Dispatcher: foreign.d})
				return err
			}},
			"the dispatcher of a reserved service point": {hw.HandleEVDCR, func() error {
				_, err := own.ia.NewRSP(ep.RSPConfig{Endpoint: own.ep, Dispatcher: foreign.d})
				return err
			}},
			"the endpoint of a reserved service point": {hw.HandleEP, func() error {
				_, err := own.ia.NewRSP(ep.RSPConfig{Endpoint: foreign.ep, Dispatcher: own.d})
				return err
			}},
			"the endpoint that accepts": {hw.HandleEP, func() error {
				cr := request()
				defer func() { require.NoError(t, cr.Reject(nil)) }()
				return cr.Accept(foreign.ep, nil)
			}},
			"a CNO":              {hw.HandleCNO, func() error { return own.d.ModifyCNO(foreign.cno) }},
			"a new dispatcher's": {hw.HandleCNO, func() error { _, err := own.ia.NewDispatcher(evd.Config{QLen: 1, CNO: foreign.cno}); return err }},
			"a one-shot": {hw.HandleEVDRequest, func() error {
				_, err := connected.a.PostBatch([]ep.DTO{{Op: hw.OpSend, OneShot: foreign.shot}})
				return err
			}},
			"a one-shot for a receive": {hw.HandleEVDRequest, func() error {
				_, err := connected.a.PostRecvBatch([]ep.DTO{{OneShot: foreign.shot}})
				return err
			}},
		} {
			t.Run(provider+"/"+name, func(t *testing.T) { requireCode(t, tc.call(), hw.InvalidHandle, tc.sub) })
		}
		// A post names memory by its context, and the other adapter's context belongs
		// to no zone of this one.
		for name, err := range map[string]error{
			"a segment":               connected.a.PostSend(1, 0, foreign.lmr.Segment(0, 8)),
			"a segment for a receive": connected.a.PostRecv(1, 0, foreign.lmr.Segment(0, 8)),
			"a shared receive":        own.srq.PostRecv(1, foreign.lmr.Segment(0, 8)),
		} {
			assert.Error(t, err, "%s/%s", provider, name)
		}
		_, err := connected.a.PostBind(1, 0, foreign.rmr, mem.Binding{Segment: connected.mem.Segment(0, 8), Privileges: hw.RemoteRead})
		requireCode(t, err, hw.InvalidHandle, hw.HandleRMR)
		require.NoError(t, own.ep.Modify(ep.Param{Recv: own.d}, "Recv"), "what was refused had no effect")
	}
}
