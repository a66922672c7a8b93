package driver

import "testing"

// connected makes a connection from p0 to p1, whose receives trigger only if they are
// solicited.
const connected = `
	pz z0
	lmr m0 pz=z0 size=64 priv=LOCAL_READ|LOCAL_WRITE|REMOTE_READ|REMOTE_WRITE
	evd e0 qlen=64 streams=CR|DTO|CONN|RMR
	evd e1 qlen=16 streams=DTO
	psp s0 evd=e0
	ep p0 pz=z0 recv=e0 req=e0 conn=e0
	ep p1 pz=z0 recv=e1 req=e0 conn=e0 recvflags=SOLICITED
	connect p0 to=s0
	dequeue e0 n=8
	accept c0 ep=p1`

// TestScriptsDoWhatTheModelSays runs scripts of programs that failed once, and of cases that deserve a
// test.
func TestScriptsDoWhatTheModelSays(t *testing.T) {
	for name, script := range map[string]string{
		"a look at an endpoint whose suppressed send waits, and has lost its region": `
			pz z0
			lmr m0 pz=z0 size=64 priv=LOCAL_READ|LOCAL_WRITE
			evd e0 qlen=64 max=64 streams=SOFTWARE|CR|DTO|CONN|RMR|ASYNC
			psp s0 evd=e0
			ep p0 pz=z0 recv=e0 req=e0 conn=e0
			ep p1 pz=z0 recv=e0 req=e0 conn=e0
			connect p0 to=s0
			dequeue e0 n=8
			accept c0 ep=p1
			send p0 cookie=9 flags=SUPPRESS local=m0:0+8
			lmr_free m0
			status p0`,
		"a message and a disconnect": `
			pz z0
			lmr m0 pz=z0 size=64 priv=LOCAL_READ|LOCAL_WRITE
			evd e0 qlen=64 streams=CR|DTO|CONN
			psp s0 evd=e0
			ep p0 pz=z0 recv=e0 req=e0 conn=e0
			ep p1 pz=z0 recv=e0 req=e0 conn=e0
			recv p1 cookie=1 local=m0:32+16
			connect p0 to=s0 private=5
			dequeue e0 n=8
			accept c0 ep=p1
			send p0 cookie=2 local=m0:0+16
			send p0 cookie=3 local=m0:0+16
			disconnect p0 how=graceful
			status p0
			recv p1 cookie=4 local=m0:48+16
			wait e0 threshold=6`,
		"a service point in the place of another": `
			pz z0
			evd e0 qlen=64 streams=CR|DTO|CONN
			psp s0 evd=e0 qual=8
			ep p0 pz=z0 recv=e0 req=e0 conn=e0
			psp_free s0
			psp s1 evd=e0 qual=8
			connect p0 to=s0
			dequeue e0 n=8
			reject c0 private=3`,
		"a write by the context that a window had before its last bind": connected + `
			rmr w0 pz=z0
			bind p1 rmr=w0 cookie=1 priv=REMOTE_WRITE local=m0:0+16
			bind p1 rmr=w0 cookie=2 priv=REMOTE_WRITE local=m0:0+16
			dequeue e0 n=8
			write p0 cookie=3 local=m0:32+8 remote=b0:0+8
			dequeue e0 n=8`,
		"a receive that is not solicited does not trigger": connected + `
			cno n0
			evd_modify_cno e1 cno=n0
			recv p1 cookie=1 local=m0:32+16
			recv p1 cookie=2 local=m0:32+16
			send p0 cookie=3 local=m0:0+16
			cno_wait n0
			send p0 cookie=4 local=m0:0+16 flags=SOLICITED
			cno_wait n0`,
	} {
		t.Run(name, func(t *testing.T) { replay(t, script) })
	}
}
