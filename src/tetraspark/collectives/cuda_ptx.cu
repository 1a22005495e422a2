/* All that is said to the machine in its own words: loads, stores and fences with their scopes,
 * conversions, the clock. Tests put plain C++ in its place and run the rest on a CPU.
 */

/* Flag and digest in one load, so that a right flag costs one trip over PCIe. */
TS_FN void load_flag(u64 at, u64 &flag, u64 &digest) {
    asm volatile("ld.acquire.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(flag), "=l"(digest) : "l"(at) : "memory");
}

TS_FN u64 load_relaxed(u64 at) {
    u64 value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}

TS_FN void store_long(u64 at, u64 value) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

TS_FN void store_word(u64 at, u32 value) {
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

TS_FN void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

TS_FN u32 add_acq_rel(u32 *at, u32 value) {
    u32 old;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
                 : "=r"(old) : "l"(at), "r"(value) : "memory");
    return old;
}

TS_FN u32 load_acquire_gpu(const u32 *at) {
    u32 value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

TS_FN void store_release_gpu(u32 *at, u32 value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

TS_FN u64 now_ns() {
    u64 value;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
    return value;
}

template <int V> struct ts_piece;
template <> struct ts_piece<16> {
    u32 x, y, z, w;
    __device__ void load(u64 at) {
        asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(at) : "memory");
    }
    __device__ void store(u64 at) const {
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
                     ::"l"(at), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
    }
};
#define TS_PIECE(bytes, type, letter, suffix)                                                     \
    template <> struct ts_piece<bytes> {                                                          \
        type x;                                                                                   \
        __device__ void load(u64 at) {                                                            \
            asm volatile("ld.relaxed.sys.global." suffix " %0, [%1];"                             \
                         : "=" letter(x) : "l"(at) : "memory");                                   \
        }                                                                                         \
        __device__ void store(u64 at) const {                                                     \
            asm volatile("st.global." suffix " [%0], %1;" ::"l"(at), letter(x) : "memory");       \
        }                                                                                         \
    };
TS_PIECE(8, u64, "l", "u64")
TS_PIECE(4, u32, "r", "u32")
TS_PIECE(2, u16, "h", "u16")
TS_PIECE(1, u32, "r", "u8")

TS_FN float widen_half(u32 half) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((u16)half));
    return value;
}

TS_FN u32 narrow_half(float value) {
    u16 half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return value != value ? 0x7e00u : half;
}
