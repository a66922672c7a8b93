// The part of libibverbs.so.1's binary interface that this package uses, so that
// it builds without the library's headers. The library keeps this interface fixed:
// structures only grow at the end or behind new functions. Names are the library's with
// gv_ for ibv_; testdata/abi_check.c compares every size, offset and constant here with
// the distribution's headers.
#ifndef GODAT_IBV_ABI_H
#define GODAT_IBV_ABI_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum {
	GV_ACCESS_LOCAL_WRITE = 1,
	GV_ACCESS_REMOTE_WRITE = 2,
	GV_ACCESS_REMOTE_READ = 4,
	GV_ACCESS_REMOTE_ATOMIC = 8,
	GV_ACCESS_MW_BIND = 16,
	GV_ACCESS_ZERO_BASED = 32,
	GV_ACCESS_RELAXED_ORDERING = 1 << 20,
};

enum { GV_QPT_RC = 2 };
enum { GV_QPS_RESET, GV_QPS_INIT, GV_QPS_RTR, GV_QPS_RTS, GV_QPS_SQD, GV_QPS_SQE, GV_QPS_ERR };
enum {
	GV_QP_STATE = 1 << 0,
	GV_QP_ACCESS_FLAGS = 1 << 3,
	GV_QP_PKEY_INDEX = 1 << 4,
	GV_QP_PORT = 1 << 5,
	GV_QP_AV = 1 << 7,
	GV_QP_PATH_MTU = 1 << 8,
	GV_QP_TIMEOUT = 1 << 9,
	GV_QP_RETRY_CNT = 1 << 10,
	GV_QP_RNR_RETRY = 1 << 11,
	GV_QP_RQ_PSN = 1 << 12,
	GV_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	GV_QP_MIN_RNR_TIMER = 1 << 15,
	GV_QP_SQ_PSN = 1 << 16,
	GV_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	GV_QP_DEST_QPN = 1 << 20,
};
enum { GV_TRANSPORT_IB = 0, GV_TRANSPORT_IWARP = 1 };
enum { GV_LINK_LAYER_INFINIBAND = 1, GV_LINK_LAYER_ETHERNET = 2 };
enum { GV_SRQ_MAX_WR = 1, GV_SRQ_LIMIT = 2 };
enum { GV_MW_TYPE_1 = 1, GV_MW_TYPE_2 = 2 };
enum { GV_DEVICE_SRQ_RESIZE = 1 << 13, GV_DEVICE_MEM_WINDOW = 1 << 17, GV_DEVICE_MW_TYPE_2B = 1 << 24, GV_DEVICE_MEM_MGT = 1 << 21 };

enum {
	GV_WR_RDMA_WRITE,
	GV_WR_RDMA_WRITE_WITH_IMM,
	GV_WR_SEND,
	GV_WR_SEND_WITH_IMM,
	GV_WR_RDMA_READ,
	GV_WR_ATOMIC_CMP_AND_SWP,
	GV_WR_ATOMIC_FETCH_AND_ADD,
	GV_WR_LOCAL_INV,
	GV_WR_BIND_MW,
	GV_WR_SEND_WITH_INV,
};

enum { GV_SEND_FENCE = 1, GV_SEND_SIGNALED = 2, GV_SEND_SOLICITED = 4, GV_SEND_INLINE = 8 };

enum {
	GV_WC_SUCCESS,
	GV_WC_LOC_LEN_ERR,
	GV_WC_LOC_QP_OP_ERR,
	GV_WC_LOC_EEC_OP_ERR,
	GV_WC_LOC_PROT_ERR,
	GV_WC_WR_FLUSH_ERR,
	GV_WC_MW_BIND_ERR,
	GV_WC_BAD_RESP_ERR,
	GV_WC_LOC_ACCESS_ERR,
	GV_WC_REM_INV_REQ_ERR,
	GV_WC_REM_ACCESS_ERR,
	GV_WC_REM_OP_ERR,
	GV_WC_RETRY_EXC_ERR,
	GV_WC_RNR_RETRY_EXC_ERR,
	GV_WC_LOC_RDD_VIOL_ERR,
	GV_WC_REM_INV_RD_REQ_ERR,
	GV_WC_REM_ABORT_ERR,
	GV_WC_INV_EECN_ERR,
	GV_WC_INV_EEC_STATE_ERR,
	GV_WC_FATAL_ERR,
	GV_WC_RESP_TIMEOUT_ERR,
	GV_WC_GENERAL_ERR,
};

enum { GV_WC_RECV = 1 << 7, GV_WC_RECV_RDMA_WITH_IMM };
enum { GV_WC_WITH_IMM = 2, GV_WC_WITH_INV = 8 };

enum {
	GV_EVENT_CQ_ERR,
	GV_EVENT_QP_FATAL,
	GV_EVENT_QP_REQ_ERR,
	GV_EVENT_QP_ACCESS_ERR,
	GV_EVENT_COMM_EST,
	GV_EVENT_SQ_DRAINED,
	GV_EVENT_PATH_MIG,
	GV_EVENT_PATH_MIG_ERR,
	GV_EVENT_DEVICE_FATAL,
	GV_EVENT_PORT_ACTIVE,
	GV_EVENT_PORT_ERR,
	GV_EVENT_LID_CHANGE,
	GV_EVENT_PKEY_CHANGE,
	GV_EVENT_SM_CHANGE,
	GV_EVENT_SRQ_ERR,
	GV_EVENT_SRQ_LIMIT_REACHED,
	GV_EVENT_QP_LAST_WQE_REACHED,
	GV_EVENT_CLIENT_REREGISTER,
	GV_EVENT_GID_CHANGE,
};

struct gv_context;
struct gv_qp;
struct gv_cq;
struct gv_srq;
struct gv_pd;
struct gv_send_wr;
struct gv_recv_wr;
struct gv_wc;
struct gv_mw;

struct gv_device {
	void *dummy1, *dummy2;
	int node_type;
	int transport_type;
	char name[64];
	char dev_name[64];
	char dev_path[256];
	char ibdev_path[256];
};

// gv_ops is the context's table of operations, through which the library's inline
// functions call. Unused entries keep the others at their offsets.
struct gv_ops {
	void *compat0[7];
	struct gv_mw *(*alloc_mw)(struct gv_pd *pd, int type);
	void *bind_mw;
	int (*dealloc_mw)(struct gv_mw *mw);
	void *compat1;
	int (*poll_cq)(struct gv_cq *cq, int n, struct gv_wc *wc);
	int (*req_notify_cq)(struct gv_cq *cq, int solicited_only);
	void *compat2[7];
	int (*post_srq_recv)(struct gv_srq *srq, struct gv_recv_wr *wr, struct gv_recv_wr **bad);
	void *compat3[4];
	int (*post_send)(struct gv_qp *qp, struct gv_send_wr *wr, struct gv_send_wr **bad);
	int (*post_recv)(struct gv_qp *qp, struct gv_recv_wr *wr, struct gv_recv_wr **bad);
	void *compat4[5];
};

struct gv_context {
	struct gv_device *device;
	struct gv_ops ops;
	int cmd_fd;
	int async_fd;
	int num_comp_vectors;
	pthread_mutex_t mutex;
	void *abi_compat;
};

struct gv_device_attr {
	char fw_ver[64];
	uint64_t node_guid;
	uint64_t sys_image_guid;
	uint64_t max_mr_size;
	uint64_t page_size_cap;
	uint32_t vendor_id;
	uint32_t vendor_part_id;
	uint32_t hw_ver;
	int max_qp;
	int max_qp_wr;
	unsigned int device_cap_flags;
	int max_sge;
	int max_sge_rd;
	int max_cq;
	int max_cqe;
	int max_mr;
	int max_pd;
	int max_qp_rd_atom;
	int max_ee_rd_atom;
	int max_res_rd_atom;
	int max_qp_init_rd_atom;
	int max_ee_init_rd_atom;
	int atomic_cap;
	int max_ee;
	int max_rdd;
	int max_mw;
	int max_raw_ipv6_qp;
	int max_raw_ethy_qp;
	int max_mcast_grp;
	int max_mcast_qp_attach;
	int max_total_mcast_qp_attach;
	int max_ah;
	int max_fmr;
	int max_map_per_fmr;
	int max_srq;
	int max_srq_wr;
	int max_srq_sge;
	uint16_t max_pkeys;
	uint8_t local_ca_ack_delay;
	uint8_t phys_port_cnt;
};

// gv_port_attr is the structure that the exported function ibv_query_port fills in; the
// header's inline function of that name fills in a longer one.
struct gv_port_attr {
	int state;
	int max_mtu;
	int active_mtu;
	int gid_tbl_len;
	uint32_t port_cap_flags;
	uint32_t max_msg_sz;
	uint32_t bad_pkey_cntr;
	uint32_t qkey_viol_cntr;
	uint16_t pkey_tbl_len;
	uint16_t lid;
	uint16_t sm_lid;
	uint8_t lmc;
	uint8_t max_vl_num;
	uint8_t sm_sl;
	uint8_t subnet_timeout;
	uint8_t init_type_reply;
	uint8_t active_width;
	uint8_t active_speed;
	uint8_t phys_state;
	uint8_t link_layer;
	uint8_t flags;
	uint16_t port_cap_flags2;
};

struct gv_pd {
	struct gv_context *context;
	uint32_t handle;
};

struct gv_mr {
	struct gv_context *context;
	struct gv_pd *pd;
	void *addr;
	size_t length;
	uint32_t handle;
	uint32_t lkey;
	uint32_t rkey;
};

struct gv_mw {
	struct gv_context *context;
	struct gv_pd *pd;
	uint32_t rkey;
	uint32_t handle;
	int type;
};

struct gv_mw_bind_info {
	struct gv_mr *mr;
	uint64_t addr;
	uint64_t length;
	unsigned int mw_access_flags;
};

struct gv_comp_channel {
	struct gv_context *context;
	int fd;
	int refcnt;
};

// Of the next three structures the package uses only the first members, declared here.
struct gv_cq {
	struct gv_context *context;
	struct gv_comp_channel *channel;
	void *cq_context;
	uint32_t handle;
	int cqe;
};

struct gv_srq {
	struct gv_context *context;
	void *srq_context;
	struct gv_pd *pd;
	uint32_t handle;
};

struct gv_qp {
	struct gv_context *context;
	void *qp_context;
	struct gv_pd *pd;
	struct gv_cq *send_cq;
	struct gv_cq *recv_cq;
	struct gv_srq *srq;
	uint32_t handle;
	uint32_t qp_num;
	int state;
	int qp_type;
};

struct gv_srq_attr {
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t srq_limit;
};

struct gv_srq_init_attr {
	void *srq_context;
	struct gv_srq_attr attr;
};

struct gv_qp_cap {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline_data;
};

struct gv_qp_init_attr {
	void *qp_context;
	struct gv_cq *send_cq;
	struct gv_cq *recv_cq;
	struct gv_srq *srq;
	struct gv_qp_cap cap;
	int qp_type;
	int sq_sig_all;
};

struct gv_ah_attr {
	struct {
		uint64_t dgid[2];
		uint32_t flow_label;
		uint8_t sgid_index;
		uint8_t hop_limit;
		uint8_t traffic_class;
	} grh;
	uint16_t dlid;
	uint8_t sl;
	uint8_t src_path_bits;
	uint8_t static_rate;
	uint8_t is_global;
	uint8_t port_num;
};

struct gv_qp_attr {
	int qp_state;
	int cur_qp_state;
	int path_mtu;
	int path_mig_state;
	uint32_t qkey;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t dest_qp_num;
	unsigned int qp_access_flags;
	struct gv_qp_cap cap;
	struct gv_ah_attr ah_attr;
	struct gv_ah_attr alt_ah_attr;
	uint16_t pkey_index;
	uint16_t alt_pkey_index;
	uint8_t en_sqd_async_notify;
	uint8_t sq_draining;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t min_rnr_timer;
	uint8_t port_num;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t alt_port_num;
	uint8_t alt_timeout;
	uint32_t rate_limit;
};

struct gv_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

struct gv_send_wr {
	uint64_t wr_id;
	struct gv_send_wr *next;
	struct gv_sge *sg_list;
	int num_sge;
	int opcode;
	unsigned int send_flags;
	uint32_t imm_data; // in network order, or the key to invalidate
	union {
		struct {
			uint64_t remote_addr;
			uint32_t rkey;
		} rdma;
		struct {
			uint64_t remote_addr;
			uint64_t compare_add;
			uint64_t swap;
			uint32_t rkey;
		} atomic;
	} wr;
	uint32_t remote_srqn;
	struct {
		struct gv_mw *mw;
		uint32_t rkey;
		struct gv_mw_bind_info bind_info;
	} bind_mw;
};

struct gv_recv_wr {
	uint64_t wr_id;
	struct gv_recv_wr *next;
	struct gv_sge *sg_list;
	int num_sge;
};

struct gv_wc {
	uint64_t wr_id;
	int status;
	int opcode;
	uint32_t vendor_err;
	uint32_t byte_len;
	uint32_t imm_data;
	uint32_t qp_num;
	uint32_t src_qp;
	unsigned int wc_flags;
	uint16_t pkey_index;
	uint16_t slid;
	uint8_t sl;
	uint8_t dlid_path_bits;
};

struct gv_async_event {
	union {
		struct gv_cq *cq;
		struct gv_qp *qp;
		struct gv_srq *srq;
		int port_num;
	} element;
	int event_type;
};

#endif
