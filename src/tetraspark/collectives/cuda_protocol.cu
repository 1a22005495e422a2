/* What the kernels share with the proxy: structures, flags, places, rounding.
 *
 * Plain C++ with no device feature, so that a host compiler can build and test it. Every TS_ name
 * in capitals that is not defined here comes from cuda_source.py, which takes it from the layout.
 */
#ifdef __CUDACC__
#define TS_FN static __device__ __forceinline__
#else
#define TS_FN static inline
#endif

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

struct ts_header {
    u64 flag;
    u32 ndim;
    u32 dims[TS_MAX_DIMS];
    u32 sizes;
    u64 digest;
    u32 reserved[18];
};

/* As ts_config of the proxy, with `base` the device's addresses of the regions. */
struct ts_config {
    u32 world, rank, lanes, direct, pull, start_sequence, spins, yields;
    u32 route_count[TS_MAX_WORLD];
    u32 route[TS_MAX_WORLD][TS_MAX_LANES];
    u64 base[TS_MAX_WORLD];
    u64 progress, arrivals, waiting, abort_word, flags;
    u64 send, send_gather, recv, recv_gather;
    u64 slot_stride, gather_stride;
    u64 send_chunk, recv_chunk, chunk_stride, outbox;
};

struct ts_request {
    u32 op, dtype, ndim, rows;
    u32 dims[TS_MAX_DIMS];
    u32 last[TS_MAX_WORLD];
    u64 bytes[TS_MAX_WORLD], row_bytes[TS_MAX_WORLD], out_offset[TS_MAX_WORLD];
    u64 out_stride;
    u64 input, output;
};

/* One group's device memory: the epoch, and counters that each launch leaves at zero. */
struct ts_state {
    u32 sequence, poison, tail, reserved;
    u32 staged[TS_MAX_LANES], published[TS_MAX_LANES], arrived[TS_MAX_LANES];
};

/* Pinned host memory, written once, by the block that poisons the group. */
struct ts_report {
    u32 valid, kind, peer, stripe;
    u32 sequence, reserved;
    u64 mine, theirs, waited_ns;
};

struct ts_device {
    u64 state, report, deadline_ns;
    u32 stagers, reserved;
};

static_assert(sizeof(ts_header) == TS_LINE, "a header fills one line");
static_assert(TS_DIGEST % 16 == 0, "the digest begins a piece of the header");
static_assert(sizeof(ts_config) == TS_SIZEOF_CONFIG, "ts_config differs from the proxy's");
static_assert(sizeof(ts_request) == TS_SIZEOF_REQUEST, "ts_request differs from the proxy's");
static_assert(sizeof(ts_state) == TS_SIZEOF_STATE, "ts_state differs from the host's");
static_assert(sizeof(ts_report) == TS_SIZEOF_REPORT, "ts_report differs from the host's");
static_assert(sizeof(ts_device) == TS_SIZEOF_DEVICE, "ts_device differs from the host's");

TS_FN u64 ts_flag_pack(u32 sequence, u32 op, u32 dtype, u32 units) {
    return (u64)sequence << TS_SEQUENCE_SHIFT | (u64)op << TS_OP_SHIFT | (u64)dtype << TS_DTYPE_SHIFT |
           (units & TS_MAX_UNITS);
}

TS_FN u32 ts_next_sequence(u32 sequence) { return sequence == 0xffffffffu ? 2u : sequence + 1u; }

TS_FN u32 ts_units(u64 bytes) { return (u32)((bytes + TS_UNIT - 1) / TS_UNIT); }

/* First unit of a stripe; the first stripes take the remainder. */
TS_FN u32 ts_stripe_first(u32 units, u32 stripes, u32 stripe) {
    u32 rest = units % stripes;
    return stripe * (units / stripes) + (stripe < rest ? stripe : rest);
}

/* 0: arrived; TS_PENDING: not yet; else what is wrong with it. */
TS_FN u32 ts_judge(u64 flag, u64 expected, u32 sequence) {
    if (flag == expected) return 0;
    u32 theirs = (u32)(flag >> TS_SEQUENCE_SHIFT);
    if (theirs == sequence) return TS_MISMATCH;
    if (flag && (int)(theirs - sequence) > 0) return TS_DIVERGED;
    return TS_PENDING;
}

TS_FN bool ts_gathers(u32 op) {
    return op == TS_GATHER_FIRST || op == TS_GATHER_LAST || op == TS_PROBE_GATHER;
}

TS_FN u32 ts_row(u32 owner, u32 source) { return source < owner ? source : source - 1; }

/* Whether each peer is sent a chunk of its own. */
TS_FN bool ts_scatters(u32 op) {
    return op == TS_REDUCE_SCATTER_FIRST || op == TS_REDUCE_SCATTER_LAST || op == TS_TWO_SHOT_REDUCE ||
           op == TS_PROBE_CHUNK;
}

/* Where `owner` keeps what it sends to `peer`. */
TS_FN u64 ts_send_slot(const ts_config &c, u32 owner, u32 peer, u32 op, u32 sequence) {
    u64 parity = sequence & 1u, rows = parity * (c.world - 1u);
    if (ts_scatters(op)) return c.send_chunk + (rows + ts_row(owner, peer)) * c.chunk_stride;
    if (op == TS_TWO_SHOT_GATHER) return c.send_chunk + rows * c.chunk_stride;
    return ts_gathers(op) ? c.send_gather + parity * c.gather_stride : c.send + parity * c.slot_stride;
}

TS_FN u64 ts_recv_slot(const ts_config &c, u32 owner, u32 source, u32 op, u32 sequence) {
    u64 slot = ts_row(owner, source) * 2u + (sequence & 1u);
    if (ts_scatters(op) || op == TS_TWO_SHOT_GATHER) return c.recv_chunk + slot * c.chunk_stride;
    return ts_gathers(op) ? c.recv_gather + slot * c.gather_stride : c.recv + slot * c.slot_stride;
}

TS_FN u64 ts_flag_place(const ts_config &c, u32 owner, u32 source, u32 sequence, u32 stripe) {
    u64 slot = ts_row(owner, source) * 2u + (sequence & 1u);
    return c.flags + (slot * c.lanes + stripe) * TS_LINE;
}

/* Where the payload of `source` is read from: its own send slot, or our receive slot. */
TS_FN u64 ts_arrived(const ts_config &c, u32 source, u32 op, u32 sequence) {
    if (c.pull) return c.base[source] + ts_send_slot(c, source, c.rank, op, sequence);
    return c.base[c.rank] + ts_recv_slot(c, c.rank, source, op, sequence);
}

/* Whether this rank's payload is staged in its own send slots, where peers or the relay find it. */
TS_FN bool ts_stages_here(const ts_config &c) { return c.pull || !c.direct; }

/* Where this rank's payload for `peer` goes; if staged here, one place for all but for chunks. */
TS_FN u64 ts_target(const ts_config &c, u32 peer, u32 op, u32 sequence) {
    if (ts_stages_here(c)) return c.base[c.rank] + ts_send_slot(c, c.rank, peer, op, sequence);
    return c.base[peer] + ts_recv_slot(c, peer, c.rank, op, sequence);
}

/* Where the relay is told of a stripe. */
TS_FN u64 ts_mark_place(const ts_config &c, u32 sequence, u32 stripe) {
    return c.base[c.rank] + c.outbox + ((sequence & 1u) * c.lanes + stripe) * TS_LINE;
}

/* FNV-1a over the shape of one rank's shard; beside the flag, so that no block reads a header. Over
 * a NIC it is in the header, which the first stripe's block reads. */
TS_FN u64 ts_digest(const ts_request &r, u32 source) {
    u64 digest = (14695981039346656037ull ^ r.ndim) * 1099511628211ull;
    for (u32 i = 0; i < TS_MAX_DIMS; i++)
        if (i < r.ndim) {
            u32 size = i + 1 == r.ndim ? r.last[source] : r.dims[i];
            digest = (digest ^ size) * 1099511628211ull;
        }
    return digest;
}

/* The stripe's part of the chunk of `owner`, as 16-byte units of the whole input. */
TS_FN void ts_chunk(const ts_request &r, u32 owner, u32 stripes, u32 stripe, u32 &first, u32 &end) {
    u32 start = ts_units(r.out_offset[owner]), count = ts_units(r.row_bytes[owner]);
    first = start + ts_stripe_first(count, stripes, stripe);
    end = start + ts_stripe_first(count, stripes, stripe + 1u);
}

/* Byte of the output for one byte of a rank's shard. */
TS_FN u64 ts_gathered(const ts_request &r, u32 source, u32 byte) {
    u32 width = (u32)r.row_bytes[source], line = byte / width;
    return r.out_offset[source] + line * r.out_stride + (byte - line * width);
}

/* Round to nearest even, as the proxy does; every NaN becomes the one quiet NaN. */
TS_FN u32 ts_bf16_bits(u32 bits) {
    u32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded;
}
