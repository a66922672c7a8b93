// The functions of libibverbs and librdmacm that gd_load finds at run time.
#ifndef GODAT_IBV_LIB_H
#define GODAT_IBV_LIB_H

#include "abi.h"
#include "abi_cm.h"

struct gd_lib {
	struct gv_device **(*get_device_list)(int *n);
	void (*free_device_list)(struct gv_device **list);
	struct gv_context *(*open_device)(struct gv_device *d);
	int (*close_device)(struct gv_context *c);
	int (*query_device)(struct gv_context *c, struct gv_device_attr *a);
	int (*query_port)(struct gv_context *c, uint8_t port, struct gv_port_attr *a);
	struct gv_pd *(*alloc_pd)(struct gv_context *c);
	int (*dealloc_pd)(struct gv_pd *pd);
	struct gv_mr *(*reg_mr)(struct gv_pd *pd, void *addr, size_t len, int access);
	struct gv_mr *(*reg_mr_iova)(struct gv_pd *pd, void *addr, size_t len, uint64_t iova, int access);
	struct gv_mr *(*reg_mr_iova2)(struct gv_pd *pd, void *addr, size_t len, uint64_t iova, unsigned int access); // may be missing
	int (*dereg_mr)(struct gv_mr *mr);
	struct gv_comp_channel *(*create_comp_channel)(struct gv_context *c);
	int (*destroy_comp_channel)(struct gv_comp_channel *c);
	struct gv_cq *(*create_cq)(struct gv_context *c, int cqe, void *ctx, struct gv_comp_channel *ch, int vector);
	int (*destroy_cq)(struct gv_cq *cq);
	int (*get_cq_event)(struct gv_comp_channel *ch, struct gv_cq **cq, void **ctx);
	void (*ack_cq_events)(struct gv_cq *cq, unsigned int n);
	struct gv_srq *(*create_srq)(struct gv_pd *pd, struct gv_srq_init_attr *a);
	int (*modify_srq)(struct gv_srq *s, struct gv_srq_attr *a, int mask);
	int (*destroy_srq)(struct gv_srq *s);
	struct gv_qp *(*create_qp)(struct gv_pd *pd, struct gv_qp_init_attr *a);
	int (*modify_qp)(struct gv_qp *qp, struct gv_qp_attr *a, int mask);
	int (*destroy_qp)(struct gv_qp *qp);
	int (*get_async_event)(struct gv_context *c, struct gv_async_event *e);
	void (*ack_async_event)(struct gv_async_event *e);

	struct gc_event_channel *(*create_event_channel)(void);
	void (*destroy_event_channel)(struct gc_event_channel *c);
	int (*create_id)(struct gc_event_channel *c, struct gc_id **id, void *ctx, int ps);
	int (*destroy_id)(struct gc_id *id);
	int (*set_option)(struct gc_id *id, int level, int name, void *value, size_t len);
	int (*bind_addr)(struct gc_id *id, struct sockaddr *a);
	int (*resolve_addr)(struct gc_id *id, struct sockaddr *src, struct sockaddr *dst, int ms);
	int (*resolve_route)(struct gc_id *id, int ms);
	int (*connect)(struct gc_id *id, struct gc_conn_param *p);
	int (*listen)(struct gc_id *id, int backlog);
	int (*accept)(struct gc_id *id, struct gc_conn_param *p);
	int (*reject)(struct gc_id *id, const void *data, uint8_t len);
	int (*establish)(struct gc_id *id);
	int (*notify)(struct gc_id *id, int event);
	int (*disconnect)(struct gc_id *id);
	int (*init_qp_attr)(struct gc_id *id, struct gv_qp_attr *a, int *mask);
	int (*get_cm_event)(struct gc_event_channel *c, struct gc_event **e);
	int (*ack_cm_event)(struct gc_event *e);
};

extern struct gd_lib gd_lib;

#endif
