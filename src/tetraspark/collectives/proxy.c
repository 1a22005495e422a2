/* The endpoint of one rank: stage, post, wait, and reduce or gather in fixed rank order.
 *
 * An operation is one exchange: every rank sends every peer something, if only a header, and waits
 * for something of every peer. A two-shot all-reduce is two exchanges with a sequence each, the
 * second begun by the poll that finishes the first: its chunk is reduced straight into the send
 * slot of the second, and the first's own chunk is read from the input.
 *
 * Every step is non-blocking (ts_begin, ts_poll); ts_wait adds the waiting. Two ways to move bytes:
 * direct (peers' regions are mapped here: shared memory) and queued (writes are handed out by
 * ts_take and reported back by ts_complete: a NIC, or the scheduler of the tests). The protocol
 * code above them is the same.
 *
 * Memory order: payload and header are plain stores, then a release store of the flag; a reader
 * acquires the flag before it loads them. A slot is reused two exchanges later: the peer's next
 * flag is a release store made after its loads of this slot, and is acquired here first. Both
 * hold on weakly ordered machines (ARM).
 *
 * Two slots an area suffice for any mix of operations. A rank posts exchange k+1 only after it has
 * finished k, that is, after its last load of any slot of k; and it finishes k+1 only after it has
 * a flag of k+1 from every peer. So whoever writes for k+2, into its own send slots or into a
 * peer's receive slots, has heard from every peer that it is done with k; and k+2 is the first
 * exchange that writes where k did, since the slot is chosen by the parity of the sequence. What
 * an operation is decides only the area, and an area that k did not use is free all the more.
 * Two-shot writes one slot early: the reduction that ends k fills the send slot of k+1, which has
 * the parity of k-1. All flags of k are here by then, so every peer is done with k-1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#define TS_ABI 4u
#define TS_LINE 128u
#define TS_MAX_WORLD 8u
#define TS_MAX_LANES 4u
#define TS_MAX_DIMS 8u
#define TS_NAP_NS 50000u
#define TS_QUEUE 64u /* two exchanges x 7 peers x 4 lanes = 56 writes */

enum { TS_DONE = 0, TS_PENDING = 1, TS_FAILED = 2, TS_ABORTED = 3, TS_BUSY = 4 };
enum {
    TS_ALL_REDUCE = 1, TS_GATHER_FIRST = 2, TS_GATHER_LAST = 3, TS_PROBE = 4, TS_PROBE_GATHER = 5,
    TS_REDUCE_SCATTER_FIRST = 6, TS_REDUCE_SCATTER_LAST = 7, TS_TWO_SHOT_REDUCE = 8,
    TS_TWO_SHOT_GATHER = 9, TS_PROBE_CHUNK = 10
};
enum { TS_BF16 = 1, TS_FP16 = 2, TS_FP32 = 3 };
enum { TS_MISMATCH = 1, TS_DIVERGED = 2, TS_LANE_ERROR = 3, TS_OVERFLOW = 4, TS_STALE_HEADER = 5 };

typedef struct {
    uint64_t flag;
    uint32_t ndim;
    uint32_t dims[TS_MAX_DIMS];
    uint32_t sizes; /* hash of the last dimensions of all ranks, as the sender believes them */
    uint64_t digest; /* of kernels */
    uint32_t reserved[18];
} ts_header;

typedef struct {
    uint32_t doorbell, posted, completed, phase;
    uint32_t reserved[28];
    uint32_t acked[TS_MAX_WORLD][TS_MAX_LANES];
} ts_progress;

typedef struct {
    uint32_t world, rank, lanes, direct, pull, start_sequence, spins, yields;
    uint32_t route_count[TS_MAX_WORLD];
    uint32_t route[TS_MAX_WORLD][TS_MAX_LANES];
    uint64_t base[TS_MAX_WORLD];
    uint64_t progress, arrivals, waiting, abort_word, flags;
    uint64_t send, send_gather, recv, recv_gather;
    uint64_t slot_stride, gather_stride;
    uint64_t send_chunk, recv_chunk, chunk_stride, outbox;
} ts_config;

typedef struct {
    uint32_t op, dtype, ndim, rows;
    uint32_t dims[TS_MAX_DIMS];
    uint32_t last[TS_MAX_WORLD]; /* last dimension of each rank's shard */
    uint64_t bytes[TS_MAX_WORLD]; /* as each rank's flag says it */
    /* Of a gather: width and place of each rank's shard in a row of the result. Of an operation on
     * chunks: bytes and place of each rank's chunk in the flat tensor. */
    uint64_t row_bytes[TS_MAX_WORLD], out_offset[TS_MAX_WORLD];
    uint64_t out_stride;
    const void *input;
    void *output;
} ts_request;

typedef struct {
    uint32_t peer, lane, stripe, sequence;
    uint64_t source, target, bytes, flag_target, flag;
} ts_write;

typedef struct {
    uint32_t kind, peer, lane, sequence;
    uint64_t mine, theirs;
    uint32_t ndim, dims[TS_MAX_DIMS], reserved;
} ts_failure;

typedef struct {
    uint64_t operations, spins, yields, sleeps, wakes;
    uint64_t writes[TS_MAX_WORLD][TS_MAX_LANES], bytes[TS_MAX_WORLD][TS_MAX_LANES];
} ts_counters;

/* Posts one write: 1 when it was taken, 0 when its lane has no room now. */
typedef int (*ts_mover)(void *context, const ts_write *write);

typedef struct {
    ts_config config;
    ts_request request;
    ts_failure failure;
    ts_counters counters;
    uint32_t sequence, pending, failed;
    uint32_t missing[TS_MAX_WORLD]; /* one bit a stripe */
    uint64_t expected[TS_MAX_WORLD];
    ts_write queue[TS_QUEUE];
    uint32_t queue_head, queue_tail;
    ts_mover mover; /* of a transport that posts in the caller's thread; else NULL */
    void *mover_context;
} ts_endpoint;

/* ---- flags ---------------------------------------------------------------------------------- */

uint64_t ts_flag_pack(uint32_t sequence, uint32_t op, uint32_t dtype, uint32_t units) {
    return (uint64_t)sequence << 32 | (uint64_t)(op & 15u) << 28 | (uint64_t)(dtype & 15u) << 24 |
           (units & 0xffffffu);
}

void ts_flag_unpack(uint64_t flag, uint32_t *out) {
    out[0] = (uint32_t)(flag >> 32);
    out[1] = (uint32_t)(flag >> 28) & 15u;
    out[2] = (uint32_t)(flag >> 24) & 15u;
    out[3] = (uint32_t)flag & 0xffffffu;
}

/* 0 means "nothing yet", and 1 after 2^32-1 would use the same slot twice running. */
uint32_t ts_next_sequence(uint32_t sequence) {
    return sequence == UINT32_MAX ? 2u : sequence + 1u;
}

/* ---- fixed-order reduction ------------------------------------------------------------------- */

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define TS_VECTOR __attribute__((target_clones("avx2", "default")))
#else
#define TS_VECTOR
#endif

static inline float as_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static inline uint32_t as_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

static inline float from_bf16(uint16_t value) { return as_float((uint32_t)value << 16); }

static inline uint16_t to_bf16(float value) {
    uint32_t bits = as_bits(value);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
}

/* Without subnormal floats, so that a caller's flush-to-zero mode changes nothing. */
static inline float from_fp16(uint16_t value) {
    uint32_t body = (uint32_t)(value & 0x7fffu) << 13, exponent = value & 0x7c00u;
    uint32_t normal = body + 0x38000000u;
    uint32_t small = as_bits(as_float(body + 0x38800000u) - as_float(0x38800000u));
    uint32_t special = body + 0x70000000u;
    uint32_t bits = exponent == 0 ? small : (exponent == 0x7c00u ? special : normal);
    return as_float(bits | (uint32_t)(value & 0x8000u) << 16);
}

static inline uint16_t to_fp16(float value) {
    uint32_t bits = as_bits(value), sign = bits & 0x80000000u, body = bits ^ sign;
    uint32_t special = body > 0x7f800000u ? 0x7e00u : 0x7c00u;
    uint32_t small = as_bits(as_float(body) + as_float(0x3f000000u)) - 0x3f000000u;
    uint32_t normal = (body - 0x38000000u + 0xfffu + ((body >> 13) & 1u)) >> 13;
    uint32_t half = body >= 0x47800000u ? special : (body < 0x38800000u ? small : normal);
    return (uint16_t)(half | sign >> 16);
}

static inline float from_fp32(float value) { return value; }
static inline float to_fp32(float value) { return value; }

#if defined(__clang__)
#define TS_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define TS_INDEPENDENT _Pragma("GCC ivdep")
#else
#define TS_INDEPENDENT
#endif

/* With the world a constant the compiler keeps the sum in registers and vectorises over i.
 * The output never overlaps a slot, so the iterations are independent. */
#define TS_SUM(type, world, load, store)                                                     \
    case world:                                                                              \
        TS_INDEPENDENT                                                                       \
        for (size_t i = 0; i < count; i++) {                                                 \
            float sum = load(((const type *)s0)[i]) + load(((const type *)s1)[i]);           \
            if (world > 2) sum += load(((const type *)s2)[i]);                               \
            if (world > 3) sum += load(((const type *)s3)[i]);                               \
            if (world > 4) sum += load(((const type *)s4)[i]);                               \
            if (world > 5) sum += load(((const type *)s5)[i]);                               \
            if (world > 6) sum += load(((const type *)s6)[i]);                               \
            if (world > 7) sum += load(((const type *)s7)[i]);                               \
            out[i] = store(sum);                                                             \
        }                                                                                    \
        break;

#define TS_REDUCE(type, name, load, store)                                                   \
    TS_VECTOR static void name(type *restrict out, const uint8_t *const *source,             \
                               uint32_t world, size_t count) {                               \
        const uint8_t *s0 = source[0], *s1 = source[1];                                      \
        const uint8_t *s2 = world > 2 ? source[2] : s0, *s3 = world > 3 ? source[3] : s0;    \
        const uint8_t *s4 = world > 4 ? source[4] : s0, *s5 = world > 5 ? source[5] : s0;    \
        const uint8_t *s6 = world > 6 ? source[6] : s0, *s7 = world > 7 ? source[7] : s0;    \
        switch (world) {                                                                     \
            TS_SUM(type, 2, load, store)                                                     \
            TS_SUM(type, 3, load, store)                                                     \
            TS_SUM(type, 4, load, store)                                                     \
            TS_SUM(type, 5, load, store)                                                     \
            TS_SUM(type, 6, load, store)                                                     \
            TS_SUM(type, 7, load, store)                                                     \
            TS_SUM(type, 8, load, store)                                                     \
        }                                                                                    \
    }

TS_REDUCE(uint16_t, reduce_bf16, from_bf16, to_bf16)
TS_REDUCE(uint16_t, reduce_fp16, from_fp16, to_fp16)
TS_REDUCE(float, reduce_fp32, from_fp32, to_fp32)

/* out = sum over ranks 0..world-1, in that order; exported for the tests and other proxies. */
int ts_reduce(void *out, const uint8_t *const *source, uint32_t world, uint32_t dtype,
              uint64_t bytes) {
    if (world < 2 || world > TS_MAX_WORLD) return TS_FAILED;
    switch (dtype) {
    case TS_BF16: reduce_bf16(out, source, world, bytes / 2); return TS_DONE;
    case TS_FP16: reduce_fp16(out, source, world, bytes / 2); return TS_DONE;
    case TS_FP32: reduce_fp32(out, source, world, bytes / 4); return TS_DONE;
    default: return TS_FAILED;
    }
}

/* ---- places in the regions ------------------------------------------------------------------- */

static inline uint8_t *region(const ts_endpoint *ep, uint32_t rank) {
    return (uint8_t *)(uintptr_t)ep->config.base[rank];
}

static inline ts_progress *progress(const ts_endpoint *ep) {
    return (ts_progress *)(region(ep, ep->config.rank) + ep->config.progress);
}

static inline void publish(uint32_t *word, uint32_t value) {
    atomic_store_explicit((_Atomic uint32_t *)word, value, memory_order_release);
}

/* The owner has no row for itself. */
static inline uint32_t row(uint32_t owner, uint32_t source) {
    return source < owner ? source : source - 1;
}

static inline int gathers(uint32_t op) {
    return op == TS_GATHER_FIRST || op == TS_GATHER_LAST || op == TS_PROBE_GATHER;
}

/* Whether each peer is sent a chunk of its own. */
static inline int scatters(uint32_t op) {
    return op == TS_REDUCE_SCATTER_FIRST || op == TS_REDUCE_SCATTER_LAST ||
           op == TS_TWO_SHOT_REDUCE || op == TS_PROBE_CHUNK;
}

/* Where `owner` keeps what it sends to `peer`. */
static uint64_t send_offset(const ts_endpoint *ep, uint32_t owner, uint32_t peer, uint32_t op,
                            uint32_t sequence) {
    const ts_config *c = &ep->config;
    uint64_t parity = sequence & 1u, rows = parity * (c->world - 1);
    if (scatters(op)) return c->send_chunk + (rows + row(owner, peer)) * c->chunk_stride;
    if (op == TS_TWO_SHOT_GATHER) return c->send_chunk + rows * c->chunk_stride;
    return gathers(op) ? c->send_gather + parity * c->gather_stride : c->send + parity * c->slot_stride;
}

static uint64_t recv_offset(const ts_endpoint *ep, uint32_t owner, uint32_t source, uint32_t op,
                            uint32_t sequence) {
    const ts_config *c = &ep->config;
    uint64_t slot = row(owner, source) * 2u + (sequence & 1u);
    if (scatters(op) || op == TS_TWO_SHOT_GATHER) return c->recv_chunk + slot * c->chunk_stride;
    return gathers(op) ? c->recv_gather + slot * c->gather_stride : c->recv + slot * c->slot_stride;
}

static uint64_t flag_offset(const ts_endpoint *ep, uint32_t owner, uint32_t source,
                            uint32_t sequence, uint32_t stripe) {
    const ts_config *c = &ep->config;
    uint64_t slot = row(owner, source) * 2u + (sequence & 1u);
    return c->flags + (slot * c->lanes + stripe) * TS_LINE;
}

/* Where this rank finds what `source` sent it. */
static const uint8_t *slot_of(const ts_endpoint *ep, uint32_t source, uint32_t op,
                              uint32_t sequence) {
    const ts_config *c = &ep->config;
    if (source == c->rank || (c->direct && c->pull))
        return region(ep, source) + send_offset(ep, source, c->rank, op, sequence);
    return region(ep, c->rank) + recv_offset(ep, c->rank, source, op, sequence);
}

static const uint8_t *arrived_slot(const ts_endpoint *ep, uint32_t source) {
    return slot_of(ep, source, ep->request.op, ep->sequence);
}

static inline uint32_t units(uint64_t bytes) { return (uint32_t)((bytes + 15u) / 16u); }

static inline uint64_t flag_of(const ts_endpoint *ep, uint32_t rank) {
    const ts_request *r = &ep->request;
    return ts_flag_pack(ep->sequence, r->op, r->dtype, units(r->bytes[rank]));
}

/* ---- sleeping and waking ---------------------------------------------------------------------- */

static inline _Atomic uint32_t *arrival_word(const ts_endpoint *ep, uint32_t rank, uint32_t parity) {
    return (_Atomic uint32_t *)(region(ep, rank) + ep->config.arrivals) + parity;
}

static void wake(_Atomic uint32_t *word) {
#ifdef __linux__
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
#else
    (void)word;
#endif
}

static void sleep_on(_Atomic uint32_t *word, uint32_t seen, uint64_t nanoseconds) {
    struct timespec time = {(time_t)(nanoseconds / 1000000000u), (long)(nanoseconds % 1000000000u)};
#ifdef __linux__
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &time, NULL, 0);
#else
    if (atomic_load(word) == seen) {
        if (time.tv_sec > 0 || time.tv_nsec > 200000) time = (struct timespec){0, 200000};
        nanosleep(&time, NULL);
    }
#endif
}

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* ---- posting ----------------------------------------------------------------------------------- */

/* One arrival a peer and operation; only the last of them wakes the waiter, so that a rank that
 * waits for three peers is scheduled once. The count is a hint: flags decide. */
static void announce(ts_endpoint *ep, uint32_t peer) {
    const ts_config *c = &ep->config;
    _Atomic uint32_t *word = arrival_word(ep, peer, ep->sequence & 1u);
    uint32_t count = atomic_fetch_add(word, 1) + 1;
    _Atomic uint32_t *waiting = (_Atomic uint32_t *)(region(ep, peer) + c->waiting);
    if (count % (c->world - 1) == 0 && atomic_load(waiting)) {
        ep->counters.wakes++;
        wake(word);
    }
}

static int post(ts_endpoint *ep, uint32_t peer, uint64_t flag) {
    const ts_config *c = &ep->config;
    const ts_request *r = &ep->request;
    uint32_t count = c->route_count[peer];
    uint32_t total = units(scatters(r->op) ? r->row_bytes[peer] : r->bytes[c->rank]);
    uint64_t source = send_offset(ep, c->rank, peer, r->op, ep->sequence);
    uint64_t target = recv_offset(ep, peer, c->rank, r->op, ep->sequence);
    uint64_t at = 0;
    for (uint32_t stripe = 0; stripe < count; stripe++) {
        uint32_t lane = c->route[peer][stripe];
        uint64_t bytes = (uint64_t)(total / count + (stripe < total % count)) * 16u;
        if (stripe == 0) bytes += TS_LINE; /* the header travels with the first stripe */
        uint64_t flag_at = flag_offset(ep, peer, c->rank, ep->sequence, stripe);
        ep->counters.writes[peer][lane]++;
        ep->counters.bytes[peer][lane] += bytes;
        if (c->direct) {
            if (!c->pull)
                memcpy(region(ep, peer) + target + at, region(ep, c->rank) + source + at, bytes);
            atomic_store_explicit((_Atomic uint64_t *)(region(ep, peer) + flag_at), flag,
                                  memory_order_release);
        } else {
            if (ep->queue_tail - ep->queue_head == TS_QUEUE) {
                ep->failure = (ts_failure){.kind = TS_OVERFLOW, .peer = peer, .lane = lane,
                                           .sequence = ep->sequence, .mine = flag};
                return TS_FAILED;
            }
            ep->queue[ep->queue_tail++ % TS_QUEUE] =
                (ts_write){peer, lane, stripe, ep->sequence, source + at, target + at, bytes,
                           flag_at, flag};
        }
        at += bytes;
    }
    if (c->direct) announce(ep, peer);
    return TS_DONE;
}

/* Hands the queue to the mover, in order, until a lane has no room. */
static void move(ts_endpoint *ep) {
    while (ep->queue_head != ep->queue_tail) {
        const ts_write *write = &ep->queue[ep->queue_head % TS_QUEUE];
        if (!ep->mover(ep->mover_context, write)) return;
        if (++ep->queue_head == ep->queue_tail) publish(&progress(ep)->posted, write->sequence);
    }
}

/* FNV-1a: a difference that no byte count shows must still be one on every rank. */
static uint32_t hash_sizes(const ts_endpoint *ep) {
    uint32_t hash = 2166136261u;
    for (uint32_t rank = 0; rank < ep->config.world; rank++)
        hash = (hash ^ ep->request.last[rank]) * 16777619u;
    return hash;
}

/* Fills the send slot for `peer`; that of TS_TWO_SHOT_GATHER holds its payload already. */
static void stage(ts_endpoint *ep, uint32_t peer, uint64_t flag) {
    const ts_request *r = &ep->request;
    uint32_t rank = ep->config.rank;
    uint8_t *slot = region(ep, rank) + send_offset(ep, rank, peer, r->op, ep->sequence);
    ts_header *header = (ts_header *)slot;
    header->flag = flag;
    header->ndim = r->ndim;
    memcpy(header->dims, r->dims, sizeof header->dims);
    header->sizes = hash_sizes(ep);
    const uint8_t *input = r->input;
    uint64_t bytes = r->op == TS_TWO_SHOT_GATHER ? 0 : r->bytes[rank];
    if (scatters(r->op)) {
        input += r->out_offset[peer];
        bytes = r->row_bytes[peer];
    }
    if (bytes) memcpy(slot + TS_LINE, input, bytes);
}

static inline uint64_t abort_word(const ts_endpoint *ep) {
    return atomic_load_explicit(
        (_Atomic uint64_t *)(region(ep, ep->config.rank) + ep->config.abort_word),
        memory_order_acquire);
}

/* Takes the next sequence, stages and posts: one exchange, of the request as it stands. */
static int exchange(ts_endpoint *ep) {
    const ts_config *c = &ep->config;
    ep->sequence = ts_next_sequence(ep->sequence);
    publish(&progress(ep)->doorbell, ep->sequence);
    for (uint32_t peer = 0; peer < c->world; peer++) {
        ep->missing[peer] = peer == c->rank ? 0 : (1u << c->route_count[peer]) - 1u;
        ep->expected[peer] = flag_of(ep, peer);
    }
    uint64_t flag = flag_of(ep, c->rank);
    /* Rotated, so that the ranks do not all write to rank 0 first. */
    for (uint32_t step = 1; step < c->world; step++) {
        uint32_t peer = (c->rank + step) % c->world;
        if (step == 1 || scatters(ep->request.op)) stage(ep, peer, flag);
        if (post(ep, peer, flag) != TS_DONE) {
            ep->failed = 1;
            return TS_FAILED;
        }
    }
    if (c->direct) publish(&progress(ep)->posted, ep->sequence);
    if (ep->mover) move(ep);
    return TS_PENDING;
}

/* Starts one operation. The caller keeps the input and output until ts_poll says it is over. */
int ts_begin(ts_endpoint *ep, const ts_request *request) {
    if (ep->failed) return TS_FAILED;
    if (abort_word(ep)) return TS_ABORTED;
    if (ep->pending) return TS_BUSY;
    ep->request = *request;
    ep->pending = 1;
    return exchange(ep);
}

/* ---- waiting and finishing ---------------------------------------------------------------------- */

static int fail(ts_endpoint *ep, uint32_t kind, uint32_t peer, uint32_t stripe, uint64_t theirs) {
    const ts_config *c = &ep->config;
    uint64_t mine = flag_of(ep, c->rank);
    uint32_t said[4];
    /* Another operation's header lies in another area. */
    ts_flag_unpack(theirs, said);
    const ts_header *header = (const ts_header *)slot_of(ep, peer, said[1], said[0]);
    ep->failure = (ts_failure){.kind = kind, .peer = peer, .lane = c->route[peer][stripe],
                               .sequence = ep->sequence, .mine = mine, .theirs = theirs};
    if (header->flag == theirs && header->ndim <= TS_MAX_DIMS) {
        ep->failure.ndim = header->ndim;
        memcpy(ep->failure.dims, header->dims, sizeof header->dims);
    }
    ep->failed = 1;
    return TS_FAILED;
}

static int look(ts_endpoint *ep, uint32_t peer) {
    const ts_config *c = &ep->config;
    for (uint32_t stripe = 0; stripe < c->route_count[peer]; stripe++) {
        if (!(ep->missing[peer] & 1u << stripe)) continue;
        uint64_t offset = flag_offset(ep, c->rank, peer, ep->sequence, stripe);
        uint64_t flag = atomic_load_explicit((_Atomic uint64_t *)(region(ep, c->rank) + offset),
                                             memory_order_acquire);
        if (flag == ep->expected[peer])
            ep->missing[peer] &= ~(1u << stripe);
        else if (flag >> 32 == ep->sequence)
            return fail(ep, TS_MISMATCH, peer, stripe, flag);
        else if (flag && (int32_t)((uint32_t)(flag >> 32) - ep->sequence) > 0)
            return fail(ep, TS_DIVERGED, peer, stripe, flag);
    }
    return ep->missing[peer] ? TS_PENDING : TS_DONE;
}

static int check_header(ts_endpoint *ep, uint32_t peer) {
    const ts_request *r = &ep->request;
    const ts_header *header = (const ts_header *)arrived_slot(ep, peer);
    if (header->flag != ep->expected[peer])
        return fail(ep, TS_STALE_HEADER, peer, 0, header->flag);
    int same = header->ndim == r->ndim && header->sizes == hash_sizes(ep);
    for (uint32_t i = 0; same && i < r->ndim; i++)
        same = header->dims[i] == (i + 1 == r->ndim ? r->last[peer] : r->dims[i]);
    return same ? TS_DONE : fail(ep, TS_MISMATCH, peer, 0, header->flag);
}

static void gather(ts_endpoint *ep, const uint8_t *const *source) {
    const ts_request *r = &ep->request;
    for (uint32_t rank = 0; rank < ep->config.world; rank++) {
        uint8_t *to = (uint8_t *)r->output + r->out_offset[rank];
        for (uint32_t i = 0; i < r->rows; i++)
            memcpy(to + i * r->out_stride, source[rank] + i * r->row_bytes[rank], r->row_bytes[rank]);
    }
}

/* The second half of a two-shot all-reduce: this rank's chunk, reduced, to everyone. */
static int gather_chunks(ts_endpoint *ep, const uint8_t *const *source) {
    ts_request *r = &ep->request;
    uint32_t rank = ep->config.rank, next = ts_next_sequence(ep->sequence);
    uint8_t *slot = region(ep, rank) + send_offset(ep, rank, rank, TS_TWO_SHOT_GATHER, next);
    ts_reduce(slot + TS_LINE, source, ep->config.world, r->dtype, r->row_bytes[rank]);
    publish(&progress(ep)->completed, ep->sequence);
    r->op = TS_TWO_SHOT_GATHER;
    memcpy(r->bytes, r->row_bytes, sizeof r->bytes);
    return exchange(ep);
}

static int finish(ts_endpoint *ep) {
    const ts_request *r = &ep->request;
    uint32_t own = ep->config.rank, world = ep->config.world;
    const uint8_t *source[TS_MAX_WORLD];
    for (uint32_t rank = 0; rank < world; rank++) {
        if (rank != own && check_header(ep, rank) != TS_DONE) return TS_FAILED;
        source[rank] = rank == own && scatters(r->op) ? (const uint8_t *)r->input + r->out_offset[own]
                                                      : arrived_slot(ep, rank) + TS_LINE;
    }
    switch (r->op) {
    case TS_ALL_REDUCE: ts_reduce(r->output, source, world, r->dtype, r->bytes[own]); break;
    case TS_REDUCE_SCATTER_FIRST:
    case TS_REDUCE_SCATTER_LAST:
        ts_reduce(r->output, source, world, r->dtype, r->row_bytes[own]);
        break;
    case TS_TWO_SHOT_REDUCE: return gather_chunks(ep, source);
    default: gather(ep, source);
    }
    ep->pending = 0;
    ep->counters.operations++;
    publish(&progress(ep)->completed, ep->sequence);
    return TS_DONE;
}

/* One look at what has arrived: TS_DONE, TS_PENDING, TS_FAILED or TS_ABORTED. Never waits. */
int ts_poll(ts_endpoint *ep) {
    if (ep->failed) return TS_FAILED;
    if (!ep->pending) return abort_word(ep) ? TS_ABORTED : TS_DONE;
    if (ep->mover && ep->queue_head != ep->queue_tail) move(ep);
    int state = TS_DONE;
    for (uint32_t step = 1; step < ep->config.world; step++) {
        uint32_t peer = (ep->config.rank + step) % ep->config.world;
        if (!ep->missing[peer]) continue;
        int seen = look(ep, peer);
        if (seen == TS_FAILED) return abort_word(ep) ? TS_ABORTED : TS_FAILED;
        if (seen == TS_PENDING) state = TS_PENDING;
    }
    if (state == TS_DONE) state = finish(ep);
    return state == TS_PENDING && abort_word(ep) ? TS_ABORTED : state;
}

/* Looks, then gives the core away, until the exchange under way is over or patience is. */
static int look_often(ts_endpoint *ep) {
    const ts_config *c = &ep->config;
    uint32_t sequence = ep->sequence;
    int state = ts_poll(ep);
    for (uint32_t i = 0; state == TS_PENDING && ep->sequence == sequence && i < c->spins; i++) {
        ep->counters.spins++;
        relax();
        state = ts_poll(ep);
    }
    for (uint32_t i = 0; state == TS_PENDING && ep->sequence == sequence && i < c->yields; i++) {
        ep->counters.yields++;
        sched_yield();
        state = ts_poll(ep);
    }
    return state;
}

/* Sleeps between looks until `end`, or until the exchange under way is over. */
static int look_seldom(ts_endpoint *ep, uint64_t end) {
    const ts_config *c = &ep->config;
    uint32_t sequence = ep->sequence;
    _Atomic uint32_t *word = arrival_word(ep, c->rank, sequence & 1u);
    _Atomic uint32_t *waiting = (_Atomic uint32_t *)(region(ep, c->rank) + c->waiting);
    int state;
    uint64_t now;
    atomic_store(waiting, 1);
    for (;;) {
        uint32_t seen = atomic_load(word);
        state = ts_poll(ep);
        if (state != TS_PENDING || ep->sequence != sequence || (now = now_ns()) >= end) break;
        ep->counters.sleeps++;
        /* Nobody wakes this word for a NIC's writes: look again soon. */
        uint64_t nap = c->direct || end - now < TS_NAP_NS ? end - now : TS_NAP_NS;
        sleep_on(word, seen, nap);
    }
    atomic_store(waiting, 0);
    return state;
}

/* Polls, then gives the core away, then sleeps, for at most `budget` nanoseconds; the same again
 * for the second half of two-shot. */
int ts_wait(ts_endpoint *ep, uint64_t budget) {
    uint64_t end = 0;
    for (;;) {
        uint32_t sequence = ep->sequence;
        int state = look_often(ep);
        if (state == TS_PENDING && ep->sequence == sequence) {
            if (!end) end = now_ns() + budget;
            state = look_seldom(ep, end);
        }
        if (state != TS_PENDING || ep->sequence == sequence) return state;
    }
}

/* ts_begin and ts_wait in one call: the fast path of a caller with CPU tensors. */
int ts_run(ts_endpoint *ep, const ts_request *request, uint64_t budget) {
    int state = ts_begin(ep, request);
    return state == TS_PENDING ? ts_wait(ep, budget) : state;
}

/* ---- queued transports --------------------------------------------------------------------------- */

/* Hands out the oldest write not yet posted; 0 when there is none. */
int ts_take(ts_endpoint *ep, ts_write *out) {
    if (ep->queue_head == ep->queue_tail) return 0;
    *out = ep->queue[ep->queue_head++ % TS_QUEUE];
    uint32_t last = ep->queue_head == ep->queue_tail ||
                    ep->queue[ep->queue_head % TS_QUEUE].sequence != out->sequence;
    if (last) publish(&progress(ep)->posted, out->sequence);
    return 1;
}

/* Lets `mover` post writes as they are begun, instead of leaving them to ts_take. */
void ts_set_mover(ts_endpoint *ep, ts_mover mover, void *context) {
    ep->mover = mover;
    ep->mover_context = context;
}

/* Reports the fate of one write: acknowledged by the peer, or failed on its lane. */
void ts_complete(ts_endpoint *ep, const ts_write *write, int acknowledged) {
    if (acknowledged) {
        publish(&progress(ep)->acked[write->peer][write->lane], write->sequence);
    } else if (!ep->failed) {
        ep->failure = (ts_failure){.kind = TS_LANE_ERROR, .peer = write->peer, .lane = write->lane,
                                   .sequence = write->sequence, .mine = write->flag};
        ep->failed = 1;
    }
}

/* ---- life ------------------------------------------------------------------------------------------ */

/* Leaves a record in one mapped region, raises its abort word and wakes its waiter. */
void ts_leave_record(ts_endpoint *ep, uint32_t rank, uint64_t offset, const void *record,
                     uint32_t bytes, uint64_t word, int raise) {
    uint8_t *base = region(ep, rank);
    memcpy(base + offset + 8, record, bytes);
    atomic_store_explicit((_Atomic uint64_t *)(base + offset), word, memory_order_release);
    if (!raise) return;
    atomic_store((_Atomic uint64_t *)(base + ep->config.abort_word), ep->config.rank + 1u);
    for (uint32_t parity = 0; parity < 2; parity++) {
        atomic_fetch_add(arrival_word(ep, rank, parity), ep->config.world - 1);
        wake(arrival_word(ep, rank, parity));
    }
}

/* Copies one record of this rank's own region to `out` and returns its word: 0 when there is none. */
uint64_t ts_read_record(ts_endpoint *ep, uint64_t offset, void *out, uint32_t capacity) {
    const uint8_t *base = region(ep, ep->config.rank) + offset;
    uint64_t word = atomic_load_explicit((_Atomic uint64_t *)base, memory_order_acquire);
    if (word > 1 && word - 1 <= capacity) memcpy(out, base + 8, word - 1);
    return word;
}

void ts_set_phase(ts_endpoint *ep, uint32_t phase) { publish(&progress(ep)->phase, phase); }

ts_endpoint *ts_open(const ts_config *config) {
    ts_endpoint *ep = calloc(1, sizeof *ep);
    if (!ep) return NULL;
    ep->config = *config;
    ep->sequence = config->start_sequence;
    publish(&progress(ep)->doorbell, ep->sequence);
    publish(&progress(ep)->posted, ep->sequence);
    publish(&progress(ep)->completed, ep->sequence);
    for (uint32_t i = 0; i < TS_MAX_WORLD * TS_MAX_LANES; i++)
        publish(&progress(ep)->acked[i / TS_MAX_LANES][i % TS_MAX_LANES], ep->sequence);
    return ep;
}

void ts_close(ts_endpoint *ep) { free(ep); }

/* Numbers that must equal the loader's own before anything else is called. */
uint32_t ts_abi(uint32_t *out, uint32_t capacity) {
    const uint32_t numbers[] = {
        TS_ABI, TS_LINE, TS_MAX_WORLD, TS_MAX_LANES, TS_MAX_DIMS, TS_QUEUE,
        sizeof(ts_header), sizeof(ts_progress), sizeof(ts_config), sizeof(ts_request),
        sizeof(ts_write), sizeof(ts_failure), sizeof(ts_counters), sizeof(ts_endpoint),
        offsetof(ts_progress, acked), offsetof(ts_config, base), offsetof(ts_config, slot_stride),
        offsetof(ts_config, outbox),
        offsetof(ts_request, bytes), offsetof(ts_request, output), offsetof(ts_write, flag),
        offsetof(ts_failure, dims), offsetof(ts_counters, bytes), offsetof(ts_endpoint, failure),
        offsetof(ts_endpoint, counters), offsetof(ts_endpoint, sequence),
        offsetof(ts_endpoint, missing),
    };
    uint32_t count = sizeof numbers / sizeof *numbers;
    for (uint32_t i = 0; i < count && i < capacity; i++) out[i] = numbers[i];
    return count;
}
