//go:build linux && cgo

#include <dlfcn.h>

#include "internal.h"

struct gd_lib gd_lib;

struct symbol {
	const char *name;
	void *to;
};

// lookup fills in function pointers. It returns the first name that the library lacks,
// or NULL.
static const char *lookup(void *lib, const struct symbol *s, int n)
{
	for (int i = 0; i < n; i++) {
		void *f = dlsym(lib, s[i].name);
		if (f == NULL)
			return s[i].name;
		*(void **)s[i].to = f;
	}
	return NULL;
}

#define IBV(f) {"ibv_" #f, &gd_lib.f}
#define RDMA(f) {"rdma_" #f, &gd_lib.f}

static const char *load_verbs(void *lib)
{
	const struct symbol all[] = {
		IBV(get_device_list), IBV(free_device_list), IBV(open_device), IBV(close_device),
		IBV(query_device), IBV(query_port), IBV(alloc_pd), IBV(dealloc_pd), IBV(reg_mr),
		IBV(reg_mr_iova), IBV(dereg_mr), IBV(create_comp_channel), IBV(destroy_comp_channel),
		IBV(create_cq), IBV(destroy_cq), IBV(get_cq_event), IBV(ack_cq_events), IBV(create_srq),
		IBV(modify_srq), IBV(destroy_srq), IBV(create_qp), IBV(modify_qp), IBV(destroy_qp),
		IBV(get_async_event), IBV(ack_async_event),
	};
	*(void **)&gd_lib.reg_mr_iova2 = dlsym(lib, "ibv_reg_mr_iova2");
	return lookup(lib, all, sizeof all / sizeof all[0]);
}

static const char *load_cm(void *lib)
{
	const struct symbol all[] = {
		RDMA(create_event_channel), RDMA(destroy_event_channel), RDMA(create_id), RDMA(destroy_id),
		RDMA(bind_addr), RDMA(resolve_addr), RDMA(resolve_route), RDMA(connect), RDMA(listen),
		RDMA(accept), RDMA(reject), RDMA(establish), RDMA(notify), RDMA(disconnect),
		RDMA(init_qp_attr), RDMA(get_cm_event), RDMA(ack_cm_event), RDMA(set_option),
	};
	return lookup(lib, all, sizeof all / sizeof all[0]);
}

// gd_load loads both libraries and never unloads them. When it fails, *missing is text
// that the caller must not free.
int gd_load(const char **missing)
{
	void *verbs = dlopen("libibverbs.so.1", RTLD_NOW);
	void *cm = verbs ? dlopen("librdmacm.so.1", RTLD_NOW) : NULL;
	if (cm == NULL) {
		*missing = dlerror();
		return -1;
	}
	*missing = load_verbs(verbs);
	if (*missing == NULL)
		*missing = load_cm(cm);
	return *missing ? -1 : 0;
}

struct gv_device **gd_devices(int *n) { return gd_lib.get_device_list(n); }

void gd_free_devices(struct gv_device **list)
{
	if (list)
		gd_lib.free_device_list(list);
}
