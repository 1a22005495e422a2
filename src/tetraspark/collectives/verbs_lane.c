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
