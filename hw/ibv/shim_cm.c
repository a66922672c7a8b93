//go:build linux && cgo

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "internal.h"

// result turns the library's result, -1 with errno or 0, into an errno or 0.
static int result(int r) { return r == 0 ? 0 : errno ? errno : EIO; }

int gd_cm_open(struct gd_device *d)
{
	d->cm = gd_lib.create_event_channel();
	return d->cm ? 0 : errno ? errno : ENODEV;
}

// gd_cm_next takes the next connection event, copies and acknowledges it. It returns
// EAGAIN when there is none. On InfiniBand the length of the private data is the
// message's and includes the padding.
int gd_cm_next(struct gd_device *d, struct gd_event *out)
{
	struct gc_event *e;
	if (gd_lib.get_cm_event(d->cm, &e) != 0)
		return errno ? errno : EAGAIN;
	memset(out, 0, offsetof(struct gd_event, data));
	out->id = e->id;
	out->key = (uintptr_t)e->id->context;
	out->parent = e->event == GC_EVENT_CONNECT_REQUEST ? (uintptr_t)e->listen_id->context : 0;
	out->event = e->event;
	out->status = e->status;
	switch (e->event) {
	case GC_EVENT_CONNECT_REQUEST:
	case GC_EVENT_CONNECT_RESPONSE:
	case GC_EVENT_ESTABLISHED:
	case GC_EVENT_REJECTED:
		out->reads_in = e->param.conn.responder_resources;
		out->reads_out = e->param.conn.initiator_depth;
		if (e->param.conn.private_data) {
			out->len = e->param.conn.private_data_len;
			memcpy(out->data, e->param.conn.private_data, out->len);
		}
	}
	gd_lib.ack_cm_event(e);
	return 0;
}

int gd_cm_new(struct gd_device *d, uint64_t key, struct gc_id **id)
{
	return result(gd_lib.create_id(d->cm, id, (void *)(uintptr_t)key, GC_PS_TCP));
}

void gd_cm_set_key(struct gc_id *id, uint64_t key) { id->context = (void *)(uintptr_t)key; }

int gd_cm_bind(struct gc_id *id, struct sockaddr_storage *addr)
{
	return result(gd_lib.bind_addr(id, (struct sockaddr *)addr));
}

// gd_cm_class sets the traffic class of the connection that the identifier will request.
int gd_cm_class(struct gc_id *id, uint8_t class)
{
	return result(gd_lib.set_option(id, GC_OPTION_ID, GC_OPTION_ID_TOS, &class, sizeof class));
}

int gd_cm_listen(struct gc_id *id, int backlog) { return result(gd_lib.listen(id, backlog)); }

int gd_cm_resolve(struct gc_id *id, struct sockaddr_storage *src, struct sockaddr_storage *dst, int ms)
{
	struct sockaddr *from = src->ss_family ? (struct sockaddr *)src : NULL;
	return result(gd_lib.resolve_addr(id, from, (struct sockaddr *)dst, ms));
}

int gd_cm_route(struct gc_id *id, int ms) { return result(gd_lib.resolve_route(id, ms)); }

static struct gc_conn_param parameters(const struct gd_up *up, uint32_t qp_num, bool srq, const uint8_t *data, int len)
{
	return (struct gc_conn_param){
		.private_data = data,
		.private_data_len = len,
		.responder_resources = up->reads_in,
		.initiator_depth = up->reads_out,
		.flow_control = 1,
		.retry_count = up->retry,
		.rnr_retry_count = up->rnr_retry,
		.srq = srq,
		.qp_num = qp_num,
	};
}

// deafen blocks the thread's signals until hear is called. Go's runtime signals its
// threads to preempt them, and the kernel restarts a call that a signal interrupted.
// Soft-iWARP waits in connect for the peer's transport; when a signal interrupts the
// wait, it abandons the connection, refuses the restarted call, and corrupts the
// listener while it cleans up.
static sigset_t deafen(void)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	return old;
}

// hear restores the thread's signals and returns the errno of the call before it, whose
// result is r.
static int hear(sigset_t old, int r)
{
	int err = result(r);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

// gd_cm_connect blocks, on some drivers, until the peer's transport has answered.
int gd_cm_connect(struct gc_id *id, const struct gd_up *up, uint32_t qp_num, bool srq, const uint8_t *data, int len)
{
	struct gc_conn_param p = parameters(up, qp_num, srq, data, len);
	sigset_t old = deafen();
	return hear(old, gd_lib.connect(id, &p));
}

int gd_cm_accept(struct gc_id *id, const struct gd_up *up, uint32_t qp_num, bool srq, const uint8_t *data, int len)
{
	struct gc_conn_param p = parameters(up, qp_num, srq, data, len);
	sigset_t old = deafen();
	return hear(old, gd_lib.accept(id, &p));
}

int gd_cm_reject(struct gc_id *id, const uint8_t *data, int len)
{
	sigset_t old = deafen();
	return hear(old, gd_lib.reject(id, data, len));
}

int gd_cm_disconnect(struct gc_id *id)
{
	sigset_t old = deafen();
	return hear(old, gd_lib.disconnect(id));
}

int gd_cm_establish(struct gc_id *id) { return result(gd_lib.establish(id)); }
int gd_cm_notify(struct gc_id *id) { return result(gd_lib.notify(id, GV_EVENT_COMM_EST)); }
int gd_cm_destroy(struct gc_id *id) { return result(gd_lib.destroy_id(id)); }

// gd_cm_device is the name of the device to which the identifier is bound, or empty.
const char *gd_cm_device(struct gc_id *id) { return id->verbs ? id->verbs->device->name : ""; }

void gd_cm_addresses(struct gc_id *id, struct sockaddr_storage *local, struct sockaddr_storage *remote)
{
	*local = id->route.src_addr;
	*remote = id->route.dst_addr;
}
