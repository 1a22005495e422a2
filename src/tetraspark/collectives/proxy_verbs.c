/* RDMA lanes of one rank: reliable connections, one a peer and lane, over libibverbs.
 *
 * Writes are posted in the thread that begins an operation (tv_move); a thread of this file does
 * all that need not be fast: it drains completion queues, tells peers how far this rank is,
 * passes failure records on and reads asynchronous events. A payload and its flag are two writes
 * of one queue pair, so the flag is never seen before the payload; regions are registered without
 * relaxed ordering, which would break that.
 *
 * Every beat of a lane is a signalled write, ordered after the data of the lane. So a lane that
 * no longer reaches its peer is found by both ends within one beat and the connection's own
 * retries, also while nothing is sent, and its completion acknowledges all data before it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TV_ABI 1u
#define TV_MAX_WORLD 8u
#define TV_MAX_LANES 4u
#define TV_MAX_DEVICES 4u
#define TV_NO_DEVICE 0xffffffffu
#define TV_INLINE 64u
#define TV_POLL_MS 5
#define TV_SPARE 16u /* of a send queue: beats and failure records find room behind data */

enum { TV_PORT_ERROR, TV_PORT_ACTIVE, TV_GID_CHANGE, TV_QP_EVENT, TV_DEVICE_FATAL, TV_OTHER, TV_EVENTS };

/* Mirrors of the protocol's structures; sizes are compared when the library is loaded. */
typedef struct {
    uint32_t peer, lane, stripe, sequence;
    uint64_t source, target, bytes, flag_target, flag;
} ts_write;

typedef struct {
    uint32_t doorbell, posted, completed, phase;
    uint32_t reserved[28];
    uint32_t acked[TV_MAX_WORLD][TV_MAX_LANES];
} ts_progress;

typedef struct {
    uint32_t words[4], acked[TV_MAX_LANES];
    uint64_t beat;
} tv_status;

typedef struct {
    uint32_t world, rank, lanes, signal_every, depth, timeout, retries, traffic_class, service_level;
    uint32_t beat_ms, record_stride, reserved;
    uint32_t device[TV_MAX_WORLD][TV_MAX_LANES]; /* TV_NO_DEVICE: the pair does not use the lane */
    uint64_t base, bytes, progress, status, records, abort_word;
} tv_config;

typedef struct {
    uint32_t qp, broken, status, vendor, error, event;
    uint64_t broken_ns, writes, signalled, completions, beats, stalls;
} tv_lane_state;

typedef struct {
    uint32_t down, reserved;
    uint64_t events[TV_EVENTS];
} tv_device_state;

typedef struct {
    uint32_t qp, sequence_number, mtu, rkey;
    uint64_t base;
    uint8_t gid[16];
} tv_remote;

typedef struct {
    struct ibv_qp *qp;
    uint64_t remote;
    uint32_t rkey, posted, done, unsignalled, beating;
    uint64_t flag;
    struct ibv_sge sge[2];
    struct ibv_send_wr wr[2];
} tv_lane;

typedef struct {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    uint32_t port, gid_index;
} tv_device;

typedef struct {
    tv_lane_state state[TV_MAX_WORLD][TV_MAX_LANES];
    tv_device_state device_state[TV_MAX_DEVICES];
    uint64_t polls, wakeups;
    char error[256];
    tv_config config;
    tv_lane lane[TV_MAX_WORLD][TV_MAX_LANES];
    tv_device device[TV_MAX_DEVICES];
    uint32_t devices, running, stop, relayed;
    uint64_t beat, next_beat;
    pthread_mutex_t lock;
    pthread_t thread;
} tv_context;

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int refuse(tv_context *c, const char *what, int error) {
    snprintf(c->error, sizeof c->error, "%s: %s", what, strerror(error));
    return 0;
}

static inline uint8_t *region(const tv_context *c) { return (uint8_t *)(uintptr_t)c->config.base; }

static inline ts_progress *progress(const tv_context *c) {
    return (ts_progress *)(region(c) + c->config.progress);
}

static inline int used(const tv_context *c, uint32_t peer, uint32_t lane) {
    return peer != c->config.rank && c->config.device[peer][lane] != TV_NO_DEVICE;
}

/* ---- completions ------------------------------------------------------------------------------ */

static uint64_t tag(uint32_t peer, uint32_t lane, uint32_t count, uint32_t sequence) {
    return (uint64_t)peer << 60 | (uint64_t)lane << 56 | (uint64_t)(count & 0xffffffu) << 32 | sequence;
}

static void break_lane(tv_context *c, uint32_t peer, uint32_t lane, uint32_t status, uint32_t vendor,
                       uint32_t error, uint32_t event) {
    tv_lane_state *state = &c->state[peer][lane];
    if (state->broken) return;
    state->status = status;
    state->vendor = vendor;
    state->error = error;
    state->event = event;
    state->broken_ns = now_ns();
    atomic_store((_Atomic uint32_t *)&state->broken, 1);
}

static void acknowledge(tv_context *c, uint32_t peer, uint32_t lane, uint32_t sequence) {
    _Atomic uint32_t *word = (_Atomic uint32_t *)&progress(c)->acked[peer][lane];
    if ((int32_t)(sequence - atomic_load(word)) > 0) atomic_store(word, sequence);
}

static void completed(tv_context *c, const struct ibv_wc *wc) {
    uint32_t peer = (uint32_t)(wc->wr_id >> 60), lane = (uint32_t)(wc->wr_id >> 56) & 15u;
    uint32_t count = (uint32_t)(wc->wr_id >> 32) & 0xffffffu;
    tv_lane *one = &c->lane[peer][lane];
    if (wc->status != IBV_WC_SUCCESS) {
        break_lane(c, peer, lane, wc->status, wc->vendor_err, 0, 0);
        return;
    }
    c->state[peer][lane].completions++;
    one->done += (count - one->done) & 0xffffffu;
    if (one->beating && ((one->done - one->beating) & 0xffffffu) < 0x800000u) one->beating = 0;
    acknowledge(c, peer, lane, (uint32_t)wc->wr_id);
}

static void drain(tv_context *c) {
    struct ibv_wc found[16];
    for (uint32_t i = 0; i < c->devices; i++)
        for (;;) {
            int count = ibv_poll_cq(c->device[i].cq, 16, found);
            c->polls++;
            for (int k = 0; k < count; k++) completed(c, &found[k]);
            if (count < 16) break;
        }
}

/* ---- posting ----------------------------------------------------------------------------------- */

static int room(tv_context *c, uint32_t peer, uint32_t lane, uint32_t wanted, uint32_t spare) {
    tv_lane *one = &c->lane[peer][lane];
    if (one->posted - one->done + wanted + spare <= c->config.depth) return 1;
    drain(c);
    return one->posted - one->done + wanted + spare <= c->config.depth;
}

static int post(tv_context *c, uint32_t peer, uint32_t lane, struct ibv_send_wr *first, uint32_t count) {
    struct ibv_send_wr *bad = NULL;
    tv_lane *one = &c->lane[peer][lane];
    int error = ibv_post_send(one->qp, first, &bad);
    if (!error) {
        one->posted += count;
        return 1;
    }
    break_lane(c, peer, lane, 0, 0, (uint32_t)error, 0);
    return 0;
}

/* Posts one stripe: payload, then flag. Returns 1, or 0 when the lane has no room. A broken lane
 * takes the write and drops it: the operation fails by the lane's state, not by this write. */
int tv_move(void *context, const ts_write *write) {
    tv_context *c = context;
    uint32_t peer = write->peer, lane = write->lane;
    tv_lane *one = &c->lane[peer][lane];
    pthread_mutex_lock(&c->lock);
    tv_lane_state *state = &c->state[peer][lane];
    int taken = 1;
    if (!state->broken && !(taken = room(c, peer, lane, 2, TV_SPARE))) state->stalls++;
    if (!state->broken && taken) {
        int signal = (one->unsignalled += 1) >= c->config.signal_every;
        if (signal) one->unsignalled = 0;
        one->sge[0].addr = c->config.base + write->source;
        one->sge[0].length = (uint32_t)write->bytes;
        one->wr[0].num_sge = write->bytes != 0;
        one->wr[0].wr_id = tag(peer, lane, one->posted + 1, write->sequence);
        one->wr[0].wr.rdma.remote_addr = one->remote + write->target;
        one->flag = write->flag;
        one->wr[1].wr_id = tag(peer, lane, one->posted + 2, write->sequence);
        one->wr[1].send_flags = IBV_SEND_INLINE | (signal ? IBV_SEND_SIGNALED : 0);
        one->wr[1].wr.rdma.remote_addr = one->remote + write->flag_target;
        state->writes += 2;
        state->signalled += (uint64_t)signal;
        post(c, peer, lane, one->wr, 2);
    }
    pthread_mutex_unlock(&c->lock);
    return taken;
}

static void write_to(tv_context *c, uint32_t peer, uint32_t lane, uint64_t offset, const void *data,
                     uint32_t bytes, unsigned flags) {
    tv_lane *one = &c->lane[peer][lane];
    struct ibv_sge sge = {(uintptr_t)data, bytes, c->device[c->config.device[peer][lane]].mr->lkey};
    struct ibv_send_wr wr = {.wr_id = tag(peer, lane, one->posted + 1, progress(c)->posted),
                             .sg_list = &sge, .num_sge = bytes != 0, .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = flags};
    wr.wr.rdma.remote_addr = one->remote + offset;
    wr.wr.rdma.rkey = one->rkey;
    post(c, peer, lane, &wr, 1);
}

/* Tells one peer how far this rank is, over every lane: an outage of one of them must not look
 * like a stopped process. An older status may arrive last; the next beat is newer. */
static void beat_peer(tv_context *c, uint32_t peer) {
    ts_progress *own = progress(c);
    tv_status line = {{0}, {0}, c->beat};
    memcpy(line.words, &own->doorbell, sizeof line.words);
    memcpy(line.acked, own->acked[peer], sizeof line.acked);
    for (uint32_t lane = 0; lane < c->config.lanes; lane++) {
        tv_lane *one = &c->lane[peer][lane];
        if (!used(c, peer, lane) || c->state[peer][lane].broken) continue;
        if (one->beating || !room(c, peer, lane, 1, 4)) continue;
        write_to(c, peer, lane, c->config.status, &line, sizeof line,
                 IBV_SEND_SIGNALED | IBV_SEND_INLINE);
        one->beating = one->posted & 0xffffffu ? one->posted & 0xffffffu : 1;
        c->state[peer][lane].beats++;
    }
}

static void beat(tv_context *c) {
    c->beat++;
    for (uint32_t step = 1; step < c->config.world; step++)
        beat_peer(c, (c->config.rank + step) % c->config.world);
}

/* Writes the record of `source`, as it lies in this rank's region, to one peer over every lane:
 * equal bytes, so that it does not matter which lanes still reach it. */
static void pass_on(tv_context *c, uint32_t source, uint32_t peer) {
    uint64_t offset = c->config.records + (uint64_t)source * c->config.record_stride;
    uint64_t word = *(uint64_t *)(region(c) + offset), alarm = source + 1u;
    for (uint32_t lane = 0; lane < c->config.lanes; lane++) {
        if (!used(c, peer, lane) || c->state[peer][lane].broken || !room(c, peer, lane, 3, 0)) continue;
        if (word > 1)
            write_to(c, peer, lane, offset + 8, region(c) + offset + 8, (uint32_t)(word - 1), 0);
        write_to(c, peer, lane, offset, &word, 8, IBV_SEND_INLINE);
        write_to(c, peer, lane, c->config.abort_word, &alarm, 8, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
    }
}

/* Passes every record that has arrived, and the own one, to all others, once: two ranks whose
 * lanes to each other are dead still learn each other's finding. */
static void relay(tv_context *c) {
    for (uint32_t step = 1; step <= c->config.world; step++) {
        /* The own record last: whoever has it has all that this rank knew. */
        uint32_t source = (c->config.rank + step) % c->config.world;
        uint64_t offset = c->config.records + (uint64_t)source * c->config.record_stride;
        _Atomic uint64_t *word = (_Atomic uint64_t *)(region(c) + offset);
        if (c->relayed & 1u << source || !atomic_load_explicit(word, memory_order_acquire)) continue;
        c->relayed |= 1u << source;
        for (uint32_t peer = 0; peer < c->config.world; peer++)
            if (peer != source && peer != c->config.rank) pass_on(c, source, peer);
    }
}

/* Sends this rank's record, which lies in its own region, to every peer now. */
void tv_spread(tv_context *c) {
    pthread_mutex_lock(&c->lock);
    relay(c);
    pthread_mutex_unlock(&c->lock);
}

/* ---- asynchronous events ------------------------------------------------------------------------ */

static uint32_t kind_of(enum ibv_event_type type) {
    switch (type) {
    case IBV_EVENT_PORT_ERR: return TV_PORT_ERROR;
    case IBV_EVENT_PORT_ACTIVE: return TV_PORT_ACTIVE;
    case IBV_EVENT_GID_CHANGE: return TV_GID_CHANGE;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR: return TV_QP_EVENT;
    case IBV_EVENT_DEVICE_FATAL: return TV_DEVICE_FATAL;
    default: return TV_OTHER;
    }
}

static void break_of_event(tv_context *c, uint32_t device, const struct ibv_async_event *event) {
    for (uint32_t peer = 0; peer < c->config.world; peer++)
        for (uint32_t lane = 0; lane < c->config.lanes; lane++) {
            if (!used(c, peer, lane) || c->config.device[peer][lane] != device) continue;
            int hit = kind_of(event->event_type) == TV_DEVICE_FATAL ||
                      c->lane[peer][lane].qp == event->element.qp;
            if (hit) break_lane(c, peer, lane, 0, 0, 0, (uint32_t)event->event_type);
        }
}

static void read_events(tv_context *c, uint32_t device) {
    struct ibv_async_event event;
    while (!ibv_get_async_event(c->device[device].context, &event)) {
        uint32_t kind = kind_of(event.event_type);
        tv_device_state *state = &c->device_state[device];
        state->events[kind]++;
        int ours = event.element.port_num == (int)c->device[device].port;
        if (kind == TV_PORT_ERROR && ours) state->down = 1;
        if (kind == TV_PORT_ACTIVE && ours) state->down = 0;
        if (kind == TV_QP_EVENT || kind == TV_DEVICE_FATAL) {
            pthread_mutex_lock(&c->lock);
            break_of_event(c, device, &event);
            pthread_mutex_unlock(&c->lock);
        }
        ibv_ack_async_event(&event);
    }
}

/* ---- the thread ----------------------------------------------------------------------------------- */

static void *serve(void *context) {
    tv_context *c = context;
    struct pollfd events[TV_MAX_DEVICES];
    for (uint32_t i = 0; i < c->devices; i++)
        events[i] = (struct pollfd){c->device[i].context->async_fd, POLLIN, 0};
    while (!atomic_load((_Atomic uint32_t *)&c->stop)) {
        if (poll(events, c->devices, TV_POLL_MS) > 0)
            for (uint32_t i = 0; i < c->devices; i++)
                if (events[i].revents) read_events(c, i);
        pthread_mutex_lock(&c->lock);
        c->wakeups++;
        drain(c);
        relay(c);
        uint64_t now = now_ns();
        if (now >= c->next_beat) {
            c->next_beat = now + c->config.beat_ms * 1000000u;
            beat(c);
        }
        pthread_mutex_unlock(&c->lock);
    }
    return NULL;
}

/* Begins to beat; every peer must be connected by now. Returns 0 on failure. */
int tv_start(tv_context *c) {
    int error = pthread_create(&c->thread, NULL, serve, c);
    if (error) return refuse(c, "no thread", error);
    c->running = 1;
    return 1;
}

static int quiet(tv_context *c) {
    int busy = 0;
    pthread_mutex_lock(&c->lock);
    drain(c);
    for (uint32_t peer = 0; peer < c->config.world; peer++)
        for (uint32_t lane = 0; lane < c->config.lanes; lane++)
            busy |= used(c, peer, lane) && !c->state[peer][lane].broken && c->lane[peer][lane].beating;
    pthread_mutex_unlock(&c->lock);
    return !busy;
}

/* Waits, at most `limit_ns`, until every living lane has delivered all that was posted, the last
 * status of this rank included. */
int tv_flush(tv_context *c, uint64_t limit_ns) {
    uint64_t end = now_ns() + limit_ns;
    for (int round = 0; round < 2; round++) {
        while (!quiet(c)) {
            if (now_ns() >= end) return 0;
            nanosleep(&(struct timespec){0, 500000}, NULL);
        }
        /* A beat that was under way may be older than the last status: one more. */
        pthread_mutex_lock(&c->lock);
        relay(c);
        if (round == 0) beat(c);
        pthread_mutex_unlock(&c->lock);
    }
    return 1;
}

/* ---- life ------------------------------------------------------------------------------------------- */

static struct ibv_context *open_device(const char *name) {
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    struct ibv_context *found = NULL;
    for (int i = 0; list && i < count; i++)
        if (!strcmp(ibv_get_device_name(list[i]), name)) found = ibv_open_device(list[i]);
    if (list) ibv_free_device_list(list);
    return found;
}

/* Returns the active MTU of a port in bytes, 0 with errno when it cannot be read. */
uint32_t tv_port_mtu(const char *name, uint32_t port) {
    struct ibv_port_attr found;
    struct ibv_context *context = open_device(name);
    if (!context) {
        if (!errno) errno = ENODEV;
        return 0;
    }
    int error = ibv_query_port(context, (uint8_t)port, &found);
    ibv_close_device(context);
    errno = error;
    return error ? 0 : 128u << found.active_mtu;
}

tv_context *tv_open(const tv_config *config) {
    tv_context *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->config = *config;
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

/* Opens the next device and registers the region with it. Returns its rkey, 0 on failure. */
uint32_t tv_add_device(tv_context *c, const char *name, uint32_t port, uint32_t gid_index) {
    tv_device *device = &c->device[c->devices];
    *device = (tv_device){.port = port, .gid_index = gid_index};
    errno = 0;
    device->context = open_device(name);
    if (!device->context) return (uint32_t)refuse(c, "ibv_open_device", errno ? errno : ENODEV);
    c->devices++;
    int flags = fcntl(device->context->async_fd, F_GETFL);
    if (fcntl(device->context->async_fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return (uint32_t)refuse(c, "the event descriptor", errno);
    device->pd = ibv_alloc_pd(device->context);
    if (!device->pd) return (uint32_t)refuse(c, "ibv_alloc_pd", errno);
    int entries = (int)(c->config.depth * (c->config.world - 1) * c->config.lanes);
    device->cq = ibv_create_cq(device->context, entries, NULL, NULL, 0);
    if (!device->cq) return (uint32_t)refuse(c, "ibv_create_cq", errno);
    device->mr = ibv_reg_mr(device->pd, region(c), c->config.bytes,
                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (!device->mr) return (uint32_t)refuse(c, "ibv_reg_mr (see ulimit -l)", errno);
    return device->mr->rkey;
}

/* Makes the queue pair of one peer's lane. Returns its number, 0 on failure. */
uint32_t tv_add_lane(tv_context *c, uint32_t peer, uint32_t lane) {
    tv_device *device = &c->device[c->config.device[peer][lane]];
    tv_lane *one = &c->lane[peer][lane];
    struct ibv_qp_init_attr wanted = {
        .send_cq = device->cq, .recv_cq = device->cq, .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = c->config.depth, .max_recv_wr = 1, .max_send_sge = 1,
                .max_recv_sge = 1, .max_inline_data = TV_INLINE}};
    one->qp = ibv_create_qp(device->pd, &wanted);
    if (!one->qp) return (uint32_t)refuse(c, "ibv_create_qp", errno);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = (uint8_t)device->port,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    int error = ibv_modify_qp(one->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                                  IBV_QP_ACCESS_FLAGS);
    if (error) return (uint32_t)refuse(c, "queue pair to INIT", error);
    c->state[peer][lane].qp = one->qp->qp_num;
    return one->qp->qp_num;
}

static void prebuild(tv_context *c, uint32_t peer, uint32_t lane, const tv_remote *remote) {
    tv_lane *one = &c->lane[peer][lane];
    uint32_t lkey = c->device[c->config.device[peer][lane]].mr->lkey;
    one->remote = remote->base;
    one->rkey = remote->rkey;
    one->sge[0].lkey = lkey;
    one->sge[1] = (struct ibv_sge){(uintptr_t)&one->flag, sizeof one->flag, lkey};
    for (int i = 0; i < 2; i++) {
        one->wr[i] = (struct ibv_send_wr){.sg_list = &one->sge[i], .num_sge = 1,
                                          .opcode = IBV_WR_RDMA_WRITE, .next = NULL};
        one->wr[i].wr.rdma.rkey = remote->rkey;
    }
    one->wr[0].next = &one->wr[1];
}

/* Connects one lane; `own_number` is where this end begins to count. Returns 0 on failure. */
int tv_join(tv_context *c, uint32_t peer, uint32_t lane, uint32_t own_number, const tv_remote *remote) {
    tv_device *device = &c->device[c->config.device[peer][lane]];
    struct ibv_qp *qp = c->lane[peer][lane].qp;
    enum ibv_mtu mtu = IBV_MTU_256;
    while (mtu < IBV_MTU_4096 && 256u << mtu <= remote->mtu) mtu++;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR, .path_mtu = mtu, .dest_qp_num = remote->qp,
        .rq_psn = remote->sequence_number, .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1, .port_num = (uint8_t)device->port,
                    .sl = (uint8_t)c->config.service_level,
                    .grh = {.sgid_index = (uint8_t)device->gid_index, .hop_limit = 64,
                            .traffic_class = (uint8_t)c->config.traffic_class}}};
    memcpy(&attr.ah_attr.grh.dgid, remote->gid, 16);
    int error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                             IBV_QP_MIN_RNR_TIMER);
    if (error) return refuse(c, "queue pair to RTR", error);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = own_number, .max_rd_atomic = 1,
                                .timeout = (uint8_t)c->config.timeout,
                                .retry_cnt = (uint8_t)c->config.retries, .rnr_retry = 7};
    error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                         IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
    if (error) return refuse(c, "queue pair to RTS", error);
    prebuild(c, peer, lane, remote);
    return 1;
}

/* Ends the thread and releases everything. The region must still be mapped. */
void tv_close(tv_context *c) {
    atomic_store((_Atomic uint32_t *)&c->stop, 1);
    if (c->running) pthread_join(c->thread, NULL);
    for (uint32_t i = 0; i < TV_MAX_WORLD * TV_MAX_LANES; i++) {
        struct ibv_qp *qp = c->lane[i / TV_MAX_LANES][i % TV_MAX_LANES].qp;
        if (qp) ibv_destroy_qp(qp);
    }
    for (uint32_t i = 0; i < c->devices; i++) {
        tv_device *device = &c->device[i];
        if (device->mr) ibv_dereg_mr(device->mr);
        if (device->cq) ibv_destroy_cq(device->cq);
        if (device->pd) ibv_dealloc_pd(device->pd);
        ibv_close_device(device->context);
    }
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* Text of a completion's status, and of an event's type. */
const char *tv_status_text(uint32_t status) { return ibv_wc_status_str((enum ibv_wc_status)status); }
const char *tv_event_text(uint32_t event) { return ibv_event_type_str((enum ibv_event_type)event); }

/* Numbers that must equal the loader's own before anything else is called. */
uint32_t tv_abi(uint32_t *out, uint32_t capacity) {
    const uint32_t numbers[] = {
        TV_ABI, TV_MAX_WORLD, TV_MAX_LANES, TV_MAX_DEVICES, sizeof(ts_write), sizeof(ts_progress),
        offsetof(ts_progress, acked), sizeof(tv_status), sizeof(tv_config), offsetof(tv_config, base),
        sizeof(tv_lane_state), sizeof(tv_device_state), sizeof(tv_remote), offsetof(tv_remote, gid),
        offsetof(tv_context, device_state), offsetof(tv_context, error),
    };
    uint32_t count = sizeof numbers / sizeof *numbers;
    for (uint32_t i = 0; i < count && i < capacity; i++) out[i] = numbers[i];
    return count;
}
