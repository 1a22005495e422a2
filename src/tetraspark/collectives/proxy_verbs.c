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
 *
 * Where fewer lanes than there are suffice, a lane that fails is left to failover.c, which comes
 * before this file in the library, and a second thread makes its connection anew.
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

#define TV_ABI 2u
#define TV_MAX_WORLD 8u
#define TV_MAX_LANES 4u
#define TV_MAX_DEVICES 4u
#define TV_NO_DEVICE 0xffffffffu
#define TV_INLINE 64u
#define TV_POLL_MS 5
#define TV_SPARE 16u /* of a send queue: beats and failure records find room behind data */
#define TV_MAIL 896u /* of a message of failover.c, in lines */
#define TV_MEND_NS 20000000u
#define TV_RETRY_NS 500000000u /* between two attempts to make a connection anew */
#define TV_PROVE_NS 5000000000u

_Static_assert(sizeof(tf_message) <= TV_MAIL, "a message fits its place");

enum { TV_PORT_ERROR, TV_PORT_ACTIVE, TV_GID_CHANGE, TV_QP_EVENT, TV_DEVICE_FATAL, TV_OTHER, TV_EVENTS };

enum { TV_OWN, TV_TOLD, TV_ABSENT }; /* who found a lane broken: this end, the peer, the start */

/* Mirror of the protocol's structure; its size is compared when the library is loaded. */
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
    uint32_t beat_ms, record_stride, failover; /* failover: a lost lane may be done without */
    uint32_t device[TV_MAX_WORLD][TV_MAX_LANES]; /* TV_NO_DEVICE: the pair does not use the lane */
    uint64_t base, bytes, progress, status, records, abort_word, mail;
} tv_config;

typedef struct {
    uint32_t qp, broken, status, vendor, error, event;
    uint32_t found_by, stuck; /* TV_OWN...; the error with which its queue pair refused to stop */
    uint32_t generation, phase, failures, rejoined; /* of failover.c; how often */
    uint32_t lost_at, back_at; /* this rank's sequence when it last failed and came back */
    uint64_t broken_ns, settled_ns, resent, writes, signalled, completions, beats, stalls;
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
    /* Of the stripes that routes give to this lane: the lane that took the last one, and from which
     * of its completions on it acknowledges them. */
    uint32_t by, mark;
    uint32_t telling, mending, proof; /* a message under way; the mender's; TV_UNPROVEN... */
    uint64_t due_ns;
    struct ibv_qp *spent; /* kept until the next is made, so that its number is not used again */
} tv_lane;

enum { TV_UNPROVEN, TV_PROVING, TV_PROVEN, TV_DISPROVEN };

typedef struct {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    uint32_t port, gid_index;
    uint8_t gid[16];
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
    pthread_t thread, mender;
    pthread_cond_t broke;
    tf_pair pair[TV_MAX_WORLD];
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
    state->found_by = TV_OWN;
    state->lost_at = progress(c)->doorbell;
    state->failures++;
    state->broken_ns = now_ns();
    state->settled_ns = 0;
    atomic_store((_Atomic uint32_t *)&state->broken, 1);
}

static void acknowledge(tv_context *c, uint32_t peer, uint32_t lane, uint32_t sequence) {
    _Atomic uint32_t *word = (_Atomic uint32_t *)&progress(c)->acked[peer][lane];
    if ((int32_t)(sequence - atomic_load(word)) > 0) atomic_store(word, sequence);
}

static int reached(const tv_lane *one, uint32_t mark) {
    return ((one->done - mark) & 0xffffffu) < 0x800000u;
}

/* What a completion of `lane` acknowledges: the stripes it took. Nothing while stripes of the pair
 * may still be lost, since a newer one says nothing of them. */
static void acknowledge_all(tv_context *c, uint32_t peer, uint32_t lane, uint32_t sequence) {
    if (!c->config.failover) {
        acknowledge(c, peer, lane, sequence);
        return;
    }
    if (!tf_settled(&c->pair[peer])) return;
    for (uint32_t i = 0; i < c->config.lanes; i++) {
        const tv_lane *one = &c->lane[peer][i];
        if (one->by == lane && reached(&c->lane[peer][lane], one->mark))
            acknowledge(c, peer, i, sequence);
    }
}

static void completed(tv_context *c, const struct ibv_wc *wc) {
    uint32_t peer = (uint32_t)(wc->wr_id >> 60), lane = (uint32_t)(wc->wr_id >> 56) & 15u;
    uint32_t count = (uint32_t)(wc->wr_id >> 32) & 0xffffffu;
    tv_lane *one = &c->lane[peer][lane];
    if (one->proof == TV_PROVING)
        one->proof = wc->status == IBV_WC_SUCCESS ? TV_PROVEN : TV_DISPROVEN;
    if (wc->status != IBV_WC_SUCCESS) {
        break_lane(c, peer, lane, wc->status, wc->vendor_err, 0, 0);
        return;
    }
    c->state[peer][lane].completions++;
    one->done += (count - one->done) & 0xffffffu;
    if (one->beating && reached(one, one->beating)) one->beating = 0;
    if (one->telling && reached(one, one->telling)) one->telling = 0;
    acknowledge_all(c, peer, lane, (uint32_t)wc->wr_id);
}

static void drain(tv_context *c) {
    struct ibv_wc found[16];
    for (uint32_t i = 0; i < c->devices; i++)
        while (c->device[i].cq) {
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

/* Posts one stripe on a lane: payload, then flag. Returns 1, or 0 when the lane has no room. A
 * broken lane takes the write and drops it: the lane's state decides what becomes of it. */
static int give(tv_context *c, const ts_write *write, uint32_t lane) {
    uint32_t peer = write->peer;
    tv_lane *one = &c->lane[peer][lane];
    tv_lane_state *state = &c->state[peer][lane];
    if (state->broken) return 1;
    if (!room(c, peer, lane, 2, TV_SPARE)) {
        state->stalls++;
        return state->broken != 0;
    }
    if (state->broken) return 1;
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
    return 1;
}

/* Gives one stripe to the lane that carries it now, and remembers which. */
static int carry(tv_context *c, const ts_write *write, int again) {
    tf_pair *pair = &c->pair[write->peer];
    tv_lane *own = &c->lane[write->peer][write->lane];
    uint32_t lane = tf_carrier(pair, write->lane);
    if (lane != TF_NONE && !give(c, write, lane)) return 0;
    if (lane != TF_NONE && (again || own->by != lane)) {
        own->by = lane;
        own->mark = c->lane[write->peer][lane].posted & 0xffffffu;
    }
    tf_gave(pair, write, lane);
    return 1;
}

/* Posts one stripe; 0 when there is no room for it now. */
int tv_move(void *context, const ts_write *write) {
    tv_context *c = context;
    pthread_mutex_lock(&c->lock);
    int taken = c->config.failover ? carry(c, write, 0) : give(c, write, write->lane);
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

/* The index that the port's table has now for the device's GID; -1 while it is not there. */
static int gid_now(const tv_device *device) {
    struct ibv_port_attr port;
    if (!device->mr || ibv_query_port(device->context, (uint8_t)device->port, &port)) return -1;
    if (port.state != IBV_PORT_ACTIVE || !port.gid_tbl_len) return -1;
    struct ibv_gid_entry *table = calloc((size_t)port.gid_tbl_len, sizeof *table);
    if (!table) return -1;
    int found = -1;
    ssize_t count = ibv_query_gid_table(device->context, table, (size_t)port.gid_tbl_len, 0);
    for (ssize_t i = 0; i < count && found < 0; i++)
        if (table[i].port_num == device->port && table[i].gid_type == IBV_GID_TYPE_ROCE_V2 &&
            !memcmp(table[i].gid.raw, device->gid, 16))
            found = (int)table[i].gid_index;
    free(table);
    return found;
}

/* Breaks the lanes that an event ends: one, or all of the device. */
static void break_of_event(tv_context *c, uint32_t device, const struct ibv_async_event *event, int all) {
    for (uint32_t peer = 0; peer < c->config.world; peer++)
        for (uint32_t lane = 0; lane < c->config.lanes; lane++) {
            if (!used(c, peer, lane) || c->config.device[peer][lane] != device) continue;
            if (all || c->lane[peer][lane].qp == event->element.qp)
                break_lane(c, peer, lane, 0, 0, 0, (uint32_t)event->event_type);
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
        int all = kind == TV_DEVICE_FATAL;
        /* Where a lane can be spared, these need no proof by retries. */
        if (c->config.failover && kind == TV_PORT_ERROR) all = ours;
        if (c->config.failover && kind == TV_GID_CHANGE)
            all = gid_now(&c->device[device]) != (int)c->device[device].gid_index;
        if (kind == TV_QP_EVENT || all) {
            pthread_mutex_lock(&c->lock);
            break_of_event(c, device, &event, all);
            pthread_mutex_unlock(&c->lock);
        }
        ibv_ack_async_event(&event);
    }
}

/* ---- failover ------------------------------------------------------------------------------------ */

static uint64_t mail_of(const tv_context *c, uint32_t rank, uint32_t lane, int going) {
    uint64_t place = ((going ? TV_MAX_WORLD : 0) + rank) * TV_MAX_LANES + lane;
    return c->config.mail + place * TV_MAIL;
}

/* Moves a queue pair to ERR, then to RESET: from the return on, nothing that comes over the lane
 * reaches this region. Whatever refuses that cannot be failed over from. */
static void stop_lane(tv_context *c, uint32_t peer, uint32_t lane) {
    tv_lane *one = &c->lane[peer][lane];
    tv_lane_state *state = &c->state[peer][lane];
    if (!state->broken) {
        break_lane(c, peer, lane, 0, 0, 0, 0);
        state->found_by = TV_TOLD;
    }
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    int error = 0;
    if (one->qp) {
        ibv_modify_qp(one->qp, &attr, IBV_QP_STATE);
        attr.qp_state = IBV_QPS_RESET;
        error = ibv_modify_qp(one->qp, &attr, IBV_QP_STATE);
        if (error && !(error = ibv_destroy_qp(one->qp))) one->qp = NULL;
    }
    if (error) {
        state->stuck = (uint32_t)error;
        return;
    }
    drain(c); /* its last completions: none comes after the reset */
    one->posted = one->done = one->unsignalled = one->beating = one->telling = 0;
    for (uint32_t i = 0; i < c->config.lanes; i++)
        if (c->lane[peer][i].by == lane) c->lane[peer][i].mark = 0;
    one->proof = TV_UNPROVEN;
    one->due_ns = now_ns() + TV_RETRY_NS;
    tf_stopped(&c->pair[peer], lane);
    pthread_cond_signal(&c->broke);
}

static void hear(tv_context *c, uint32_t peer) {
    for (uint32_t lane = 0; lane < c->config.lanes; lane++)
        tf_hear(&c->pair[peer], (const tf_message *)(region(c) + mail_of(c, peer, lane, 0)), region(c),
                c->config.bytes);
}

/* Says what is due over every lane that carries and has delivered the last message. */
static void tell(tv_context *c, uint32_t peer) {
    tf_message message;
    uint32_t free = 0;
    for (uint32_t lane = 0; lane < c->config.lanes; lane++) {
        int works = used(c, peer, lane) && !c->state[peer][lane].broken;
        if (works && !c->lane[peer][lane].telling && room(c, peer, lane, 1, 4)) free |= 1u << lane;
    }
    if (!free || !tf_say(&c->pair[peer], &message)) return;
    for (uint32_t lane = 0; lane < c->config.lanes; lane++) {
        if (!(free & 1u << lane) || c->state[peer][lane].broken) continue;
        uint8_t *going = region(c) + mail_of(c, peer, lane, 1);
        memcpy(going, &message, sizeof message);
        write_to(c, peer, lane, mail_of(c, c->config.rank, lane, 0), going, sizeof message,
                 IBV_SEND_SIGNALED);
        uint32_t posted = c->lane[peer][lane].posted & 0xffffffu;
        c->lane[peer][lane].telling = posted ? posted : 1;
    }
}

/* One round of a pair: what failed, what the peer says, what is owed, what to say. */
static void look_after(tv_context *c, uint32_t peer) {
    tf_pair *pair = &c->pair[peer];
    ts_write write;
    hear(c, peer);
    for (uint32_t lane = 0; lane < c->config.lanes; lane++) {
        tv_lane_state *state = &c->state[peer][lane];
        if (!used(c, peer, lane)) continue;
        if (state->broken && pair->own[lane].phase == TF_UP) tf_fail(pair, lane);
        if (c->lane[peer][lane].proof == TV_DISPROVEN) tf_fail(pair, lane);
        if (!c->lane[peer][lane].mending && !state->stuck && tf_wanted(pair, lane) == TF_STOP)
            stop_lane(c, peer, lane);
    }
    tf_think(pair, region(c), c->config.bytes);
    while (tf_owed(pair, &write) && carry(c, &write, 1)) continue;
    while (tf_arrived(pair, &write)) acknowledge(c, peer, write.lane, write.sequence);
    tell(c, peer);
    for (uint32_t lane = 0; lane < c->config.lanes; lane++) {
        tv_lane_state *state = &c->state[peer][lane];
        state->generation = pair->own[lane].generation;
        state->phase = pair->own[lane].phase;
        state->resent = pair->resent[lane];
        if (!state->settled_ns && state->phase == TF_DOWN && pair->own[lane].settled)
            state->settled_ns = now_ns();
    }
}

/* ---- connections made anew ------------------------------------------------------------------------- */

static uint32_t device_mtu(const tv_device *device) {
    struct ibv_port_attr port;
    return ibv_query_port(device->context, (uint8_t)device->port, &port) ? 256 : 128u << port.active_mtu;
}

static struct ibv_qp *make_qp(tv_context *c, tv_device *device) {
    struct ibv_qp_init_attr wanted = {
        .send_cq = device->cq, .recv_cq = device->cq, .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = c->config.depth, .max_recv_wr = 1, .max_send_sge = 1,
                .max_recv_sge = 1, .max_inline_data = TV_INLINE}};
    struct ibv_qp *qp = device->pd ? ibv_create_qp(device->pd, &wanted) : NULL;
    if (!qp) return NULL;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = (uint8_t)device->port,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    int error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                             IBV_QP_ACCESS_FLAGS);
    if (!error) return qp;
    ibv_destroy_qp(qp);
    errno = error;
    return NULL;
}

static int connect_qp(tv_context *c, tv_device *device, struct ibv_qp *qp, uint32_t own_number,
                      const tv_remote *remote) {
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
    return error ? refuse(c, "queue pair to RTS", error) : 1;
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

/* A fresh queue pair, told to the peer. The lock is given up while the kernel works. */
static void offer(tv_context *c, uint32_t peer, uint32_t lane) {
    tv_lane *one = &c->lane[peer][lane];
    tv_device *device = &c->device[c->config.device[peer][lane]];
    struct ibv_qp *spent = one->spent, *made = NULL;
    one->spent = NULL;
    one->mending = 1;
    pthread_mutex_unlock(&c->lock);
    int index = gid_now(device);
    if (index >= 0) made = make_qp(c, device);
    if (made && spent) ibv_destroy_qp(spent);
    pthread_mutex_lock(&c->lock);
    one->mending = 0;
    one->due_ns = now_ns() + TV_RETRY_NS;
    if (!made) {
        one->spent = spent;
        return;
    }
    one->spent = one->qp;
    one->qp = made;
    device->gid_index = (uint32_t)index;
    c->state[peer][lane].qp = made->qp_num;
    tf_offer mine = {.qp = made->qp_num, .sequence_number = (uint32_t)now_ns() >> 4 & 0xffffffu,
                     .mtu = device_mtu(device), .rkey = device->mr->rkey, .base = c->config.base};
    memcpy(mine.gid, device->gid, 16);
    tf_offered(&c->pair[peer], lane, &mine);
}

static void join_again(tv_context *c, uint32_t peer, uint32_t lane) {
    tv_lane *one = &c->lane[peer][lane];
    tf_pair *pair = &c->pair[peer];
    tv_device *device = &c->device[c->config.device[peer][lane]];
    const tf_offer *theirs = tf_peer(pair, lane), *mine = &pair->own[lane].offer;
    tv_remote remote = {theirs->qp, theirs->sequence_number,
                        theirs->mtu < mine->mtu ? theirs->mtu : mine->mtu, theirs->rkey, theirs->base,
                        {0}};
    memcpy(remote.gid, theirs->gid, 16);
    uint32_t number = mine->sequence_number;
    one->mending = 1;
    pthread_mutex_unlock(&c->lock);
    int joined = connect_qp(c, device, one->qp, number, &remote);
    pthread_mutex_lock(&c->lock);
    one->mending = 0;
    if (!joined) {
        tf_fail(pair, lane);
        return;
    }
    prebuild(c, peer, lane, &remote);
    one->proof = TV_UNPROVEN;
    one->due_ns = now_ns() + TV_PROVE_NS;
    tf_joined(pair, lane);
}

/* Sends a write over the lane; once it is acknowledged the lane carries again. */
static void prove(tv_context *c, uint32_t peer, uint32_t lane) {
    tv_lane *one = &c->lane[peer][lane];
    tv_lane_state *state = &c->state[peer][lane];
    if (one->proof == TV_UNPROVEN) {
        one->proof = TV_PROVING;
        write_to(c, peer, lane, c->config.status, region(c), 0, IBV_SEND_SIGNALED);
    } else if (one->proof == TV_PROVEN) {
        one->proof = TV_UNPROVEN;
        state->back_at = progress(c)->doorbell;
        state->rejoined++;
        tf_proven(&c->pair[peer], lane);
        atomic_store((_Atomic uint32_t *)&state->broken, 0);
    } else if (now_ns() >= one->due_ns) {
        one->proof = TV_DISPROVEN;
    }
}

static void mend_lane(tv_context *c, uint32_t peer, uint32_t lane) {
    if (c->state[peer][lane].stuck) return;
    switch (tf_wanted(&c->pair[peer], lane)) {
    case TF_OFFER:
        if (now_ns() >= c->lane[peer][lane].due_ns) offer(c, peer, lane);
        break;
    case TF_JOIN: join_again(c, peer, lane); break;
    case TF_PROVE: prove(c, peer, lane); break;
    default: break;
    }
}

static int stopping(tv_context *c) { return atomic_load((_Atomic uint32_t *)&c->stop) != 0; }

/* Makes lost connections anew; waits while there is none. */
static void *mend(void *context) {
    tv_context *c = context;
    pthread_mutex_lock(&c->lock);
    while (!stopping(c)) {
        int lost = 0;
        for (uint32_t i = 0; i < TV_MAX_WORLD * TV_MAX_LANES && !stopping(c); i++) {
            uint32_t peer = i / TV_MAX_LANES, lane = i % TV_MAX_LANES;
            if (peer >= c->config.world || lane >= c->config.lanes || !used(c, peer, lane)) continue;
            if (!c->state[peer][lane].broken) continue;
            lost = 1;
            mend_lane(c, peer, lane);
        }
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += TV_MEND_NS;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        if (lost)
            pthread_cond_timedwait(&c->broke, &c->lock, &until);
        else if (!stopping(c))
            pthread_cond_wait(&c->broke, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* ---- the thread ----------------------------------------------------------------------------------- */

static void *serve(void *context) {
    tv_context *c = context;
    struct pollfd events[TV_MAX_DEVICES];
    for (uint32_t i = 0; i < c->devices; i++)
        events[i] = (struct pollfd){
            c->device[i].context ? c->device[i].context->async_fd : -1, POLLIN, 0};
    while (!stopping(c)) {
        if (poll(events, c->devices, TV_POLL_MS) > 0)
            for (uint32_t i = 0; i < c->devices; i++)
                if (events[i].revents) read_events(c, i);
        pthread_mutex_lock(&c->lock);
        c->wakeups++;
        drain(c);
        relay(c);
        for (uint32_t peer = 0; c->config.failover && peer < c->config.world; peer++)
            if (peer != c->config.rank) look_after(c, peer);
        uint64_t now = now_ns();
        if (now >= c->next_beat) {
            c->next_beat = now + c->config.beat_ms * 1000000u;
            beat(c);
        }
        pthread_mutex_unlock(&c->lock);
    }
    return NULL;
}

/* Which lanes to a peer are connected, a bit each; the others are broken from the start. */
static uint32_t connected(tv_context *c, uint32_t peer) {
    uint32_t up = 0;
    for (uint32_t lane = 0; lane < c->config.lanes; lane++) {
        c->lane[peer][lane].by = lane;
        if (!used(c, peer, lane)) continue;
        if (c->lane[peer][lane].rkey) {
            up |= 1u << lane;
            continue;
        }
        break_lane(c, peer, lane, 0, 0, 0, 0);
        c->state[peer][lane].found_by = TV_ABSENT;
    }
    return up;
}

/* Begins to beat; every peer must be connected by now. Returns 0 on failure. */
int tv_start(tv_context *c) {
    for (uint32_t peer = 0; peer < c->config.world; peer++) {
        uint32_t wired = 0;
        for (uint32_t lane = 0; lane < c->config.lanes; lane++) wired += (uint32_t)used(c, peer, lane);
        tf_open(&c->pair[peer], wired, connected(c, peer));
    }
    int error = pthread_create(&c->thread, NULL, serve, c);
    if (error) return refuse(c, "no thread", error);
    c->running = 1;
    if (!c->config.failover) return 1;
    error = pthread_create(&c->mender, NULL, mend, c);
    if (error) return refuse(c, "no second thread", error);
    c->running = 2;
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
    pthread_cond_init(&c->broke, NULL);
    return c;
}

/* Opens the next device and registers the region with it. Returns its rkey, 0 on failure; the
 * device keeps its place then, without a lane. */
uint32_t tv_add_device(tv_context *c, const char *name, uint32_t port, uint32_t gid_index,
                       const uint8_t *gid) {
    tv_device *device = &c->device[c->devices++];
    *device = (tv_device){.port = port, .gid_index = gid_index};
    memcpy(device->gid, gid, 16);
    errno = 0;
    device->context = open_device(name);
    if (!device->context) return (uint32_t)refuse(c, "ibv_open_device", errno ? errno : ENODEV);
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
    struct ibv_qp *made = make_qp(c, &c->device[c->config.device[peer][lane]]);
    if (!made) return (uint32_t)refuse(c, "a queue pair in INIT", errno);
    c->lane[peer][lane].qp = made;
    c->state[peer][lane].qp = made->qp_num;
    return made->qp_num;
}

/* Connects one lane; `own_number` is where this end begins to count. Returns 0 on failure. */
int tv_join(tv_context *c, uint32_t peer, uint32_t lane, uint32_t own_number, const tv_remote *remote) {
    tv_device *device = &c->device[c->config.device[peer][lane]];
    if (!connect_qp(c, device, c->lane[peer][lane].qp, own_number, remote)) return 0;
    prebuild(c, peer, lane, remote);
    return 1;
}

/* Ends the threads and releases everything. The region must still be mapped. */
void tv_close(tv_context *c) {
    pthread_mutex_lock(&c->lock);
    atomic_store((_Atomic uint32_t *)&c->stop, 1);
    pthread_cond_signal(&c->broke);
    pthread_mutex_unlock(&c->lock);
    if (c->running > 0) pthread_join(c->thread, NULL);
    if (c->running > 1) pthread_join(c->mender, NULL);
    for (uint32_t i = 0; i < TV_MAX_WORLD * TV_MAX_LANES; i++) {
        tv_lane *one = &c->lane[i / TV_MAX_LANES][i % TV_MAX_LANES];
        if (one->qp) ibv_destroy_qp(one->qp);
        if (one->spent) ibv_destroy_qp(one->spent);
    }
    for (uint32_t i = 0; i < c->devices; i++) {
        tv_device *device = &c->device[i];
        if (device->mr) ibv_dereg_mr(device->mr);
        if (device->cq) ibv_destroy_cq(device->cq);
        if (device->pd) ibv_dealloc_pd(device->pd);
        if (device->context) ibv_close_device(device->context);
    }
    pthread_cond_destroy(&c->broke);
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
        offsetof(tv_context, device_state), offsetof(tv_context, error), TV_MAIL, sizeof(tv_lane),
    };
    uint32_t count = sizeof numbers / sizeof *numbers;
    for (uint32_t i = 0; i < count && i < capacity; i++) out[i] = numbers[i];
    return count;
}
