/* In place of cuda_ptx.cu: the same words for a CPU. What is polled gives way to other fibers. */

static u64 fake_ns;

TS_FN void load_flag(u64 at, u64 &flag, u64 &digest) {
    give_way();
    flag = *(u64 *)at, digest = *(u64 *)(at + 8);
}
TS_FN u64 load_relaxed(u64 at) { return *(u64 *)at; }
TS_FN void store_long(u64 at, u64 value) { *(u64 *)at = value; }
TS_FN void store_word(u64 at, u32 value) { *(u32 *)at = value; }
TS_FN void fence_system() {}
TS_FN u32 add_acq_rel(u32 *at, u32 value) {
    u32 old = *at;
    *at += value;
    return old;
}
TS_FN u32 load_acquire_gpu(const u32 *at) {
    give_way();
    return *at;
}
TS_FN void store_release_gpu(u32 *at, u32 value) { *at = value; }
TS_FN u64 now_ns() { return fake_ns += 1000; }

template <int V> struct ts_piece;
template <> struct ts_piece<16> {
    u32 x, y, z, w;
    void load(u64 at) { memcpy(this, (void *)at, 16); }
    void store(u64 at) const { memcpy((void *)at, this, 16); }
};
template <int V> struct ts_piece {
    u64 x;
    void load(u64 at) { memcpy(&x, (void *)at, V); }
    void store(u64 at) const { memcpy((void *)at, &x, V); }
};

TS_FN float widen_half(u32 half) {
    _Float16 value;
    u16 bits = (u16)half;
    memcpy(&value, &bits, 2);
    return (float)value;
}
TS_FN u32 narrow_half(float value) {
    _Float16 half = (_Float16)value;
    u16 bits;
    memcpy(&bits, &half, 2);
    return value != value ? 0x7e00u : bits;
}
