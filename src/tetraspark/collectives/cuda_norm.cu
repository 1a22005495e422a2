/* All-reduce, residual add and RMSNorm in one pass over the sum; docs/cuda-collectives.md.
 *
 * A row is summed by one block, so a stripe is whole rows. The order of every rounding is that of
 * the separate kernels: the sum is rounded to bf16, added to the residual in fp32, and the norm is
 * taken of that fp32 sum, not of the rounded residual.
 */

#define TS_WARPS (TS_THREADS / 32u)
#define TS_NORM_PIECES 4u /* pieces of a row a thread: up to 8 x 4 x TS_THREADS columns */
static_assert(TS_NORM_PIECES % TS_UNROLL == 0u || TS_UNROLL > TS_NORM_PIECES, "rounds of a row are whole");

struct ts_epilogue {
    u64 residual, residual_out, weight;
    u32 columns;
    float epsilon;
};
static_assert(sizeof(ts_epilogue) == TS_SIZEOF_EPILOGUE, "ts_epilogue differs from the host's");

/* Two sets of partial sums, used in turn, so that one barrier a row is enough. */
struct ts_partial {
    float warp[2][32];
};

TS_FN float sum_lanes(float value) {
#pragma unroll
    for (u32 apart = 16u; apart; apart /= 2u)
        value = __fadd_rn(value, __shfl_xor_sync(TS_ALL, value, apart));
    return value;
}

/* The block's sum, the same bits on every thread: a tree over lanes, then one over warps. */
static __device__ float sum_block(float value, float *warp) {
    u32 lane = threadIdx.x % 32u;
    value = sum_lanes(value);
    if (lane == 0u) warp[threadIdx.x / 32u] = value;
    __syncthreads();
    return sum_lanes(lane < TS_WARPS ? warp[lane] : 0.0f);
}

TS_FN float low(u32 word) { return __uint_as_float(word << 16); }
TS_FN float high(u32 word) { return __uint_as_float(word & 0xffff0000u); }
TS_FN u32 pack(float first, float second) {
    return ts_bf16_bits(__float_as_uint(first)) | ts_bf16_bits(__float_as_uint(second)) << 16;
}

/* One piece of a row: adds the residual, keeps the fp32 sums, returns the new residual. */
TS_FN ts_piece<16> add_residual(const ts_piece<16> &sum, const ts_piece<16> &old, float *kept, float &squares) {
    const u32 a[4] = {sum.x, sum.y, sum.z, sum.w}, b[4] = {old.x, old.y, old.z, old.w};
    u32 out[4];
#pragma unroll
    for (u32 i = 0; i < 4u; i++) {
        kept[2u * i] = __fadd_rn(low(a[i]), low(b[i]));
        kept[2u * i + 1u] = __fadd_rn(high(a[i]), high(b[i]));
        out[i] = pack(kept[2u * i], kept[2u * i + 1u]);
        squares = __fadd_rn(squares, __fmul_rn(kept[2u * i], kept[2u * i]));
        squares = __fadd_rn(squares, __fmul_rn(kept[2u * i + 1u], kept[2u * i + 1u]));
    }
    return {out[0], out[1], out[2], out[3]};
}

TS_FN ts_piece<16> normalize(const float *kept, const ts_piece<16> &weight, float scale) {
    const u32 w[4] = {weight.x, weight.y, weight.z, weight.w};
    u32 out[4];
#pragma unroll
    for (u32 i = 0; i < 4u; i++)
        out[i] = pack(__fmul_rn(__fmul_rn(kept[2u * i], scale), low(w[i])),
                      __fmul_rn(__fmul_rn(kept[2u * i + 1u], scale), high(w[i])));
    return {out[0], out[1], out[2], out[3]};
}

/* One row by one block. `from`: the place of each rank's row; RANKS of them are summed. */
template <u32 RANKS>
static __device__ void norm_row(const u64 *from, u64 output, const ts_epilogue &e, u32 row, float *warp) {
    u32 count = e.columns / 8u;
    u64 start = (u64)row * count * 16u;
    float kept[TS_NORM_PIECES][8], squares = 0.0f;
#pragma unroll
    for (u32 round = 0; round < TS_NORM_PIECES; round += TS_UNROLL) {
        if (round * TS_THREADS >= count) break;
        ts_piece<16> piece[TS_UNROLL][RANKS], old[TS_UNROLL];
#pragma unroll
        for (u32 u = 0; u < TS_UNROLL; u++) {
            u32 at = threadIdx.x + (round + u) * TS_THREADS;
            if (round + u >= TS_NORM_PIECES || at >= count) continue;
#pragma unroll
            for (u32 rank = 0; rank < RANKS; rank++) piece[u][rank].load(from[rank] + start + at * 16ull);
            old[u].load(e.residual + start + at * 16ull);
        }
#pragma unroll
        for (u32 u = 0; u < TS_UNROLL; u++) {
            u32 at = threadIdx.x + (round + u) * TS_THREADS;
            if (round + u >= TS_NORM_PIECES || at >= count) continue;
            ts_piece<16> sum = piece[u][0];
            if constexpr (RANKS > 1u) sum = sum_pieces<ts_bf16>(piece[u]);
            add_residual(sum, old[u], kept[round + u], squares).store(e.residual_out + start + at * 16ull);
        }
    }
    float mean = __fdiv_rn(sum_block(squares, warp), (float)e.columns);
    float scale = rsqrt_of(__fadd_rn(mean, e.epsilon));
#pragma unroll
    for (u32 i = 0; i < TS_NORM_PIECES; i++) {
        u32 at = threadIdx.x + i * TS_THREADS;
        if (at >= count) break;
        ts_piece<16> weight;
        weight.load(e.weight + at * 16ull);
        normalize(kept[i], weight, scale).store(output + start + at * 16ull);
    }
}

struct ts_reduce_norm {
    enum { width = 16, parts = 1 };
    const ts_epilogue &e;
    ts_partial &partial;

    __device__ u32 row_of(const ts_config &c, const ts_request &r, u32 stripe) const {
        return ts_stripe_first(ts_units(r.bytes[c.rank]) * 8u / e.columns, c.lanes, stripe);
    }

    __device__ ts_span span(const ts_config &c, const ts_request &r, u32 stripe, u32) const {
        u32 count = e.columns / 8u;
        return {row_of(c, r, stripe) * count, row_of(c, r, stripe + 1u) * count, 0u, TS_ALL};
    }

    __device__ void finish_stripe(const ts_config &c, const ts_request &r, u32 sequence, u32 stripe,
                                  ts_share share) const {
        u64 from[TS_WORLD];
#pragma unroll
        for (u32 rank = 0; rank < TS_WORLD; rank++)
            from[rank] = rank == c.rank ? r.input : ts_arrived(c, rank, r.op, sequence) + TS_LINE;
        u32 end = row_of(c, r, stripe + 1u), turn = 0u;
        for (u32 row = row_of(c, r, stripe) + share.index; row < end; row += share.count, turn ^= 1u)
            norm_row<TS_WORLD>(from, r.output, e, row, partial.warp[turn]);
    }
};

extern "C" __global__ void __launch_bounds__(TS_THREADS)
    ts_reduce_norm_bf16(const __grid_constant__ ts_config c, const __grid_constant__ ts_request r,
                        const __grid_constant__ ts_device d, const __grid_constant__ ts_epilogue e) {
    __shared__ ts_partial partial;
    operate(c, r, d, ts_reduce_norm{e, partial});
}

/* The same rows with the sum in memory already: the input is this rank's tensor, unsent. */
extern "C" __global__ void __launch_bounds__(TS_THREADS)
    ts_add_norm_bf16(const __grid_constant__ ts_request r, const __grid_constant__ ts_epilogue e) {
    __shared__ ts_partial partial;
    u64 from[1] = {r.input};
    norm_row<1u>(from, r.output, e, blockIdx.x, partial.warp[0]);
}
