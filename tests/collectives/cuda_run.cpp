
/* ---- launches of several ranks, side by side ---------------------------------------------------- */

struct Launch {
    void *kernel;
    u32 grid_x, grid_y;
    ts_config c;
    ts_request r;
    ts_device d;
};

static const Launch *entering;

static void body() {
    const Launch &l = *entering;
    ((void (*)(ts_config, ts_request, ts_device))l.kernel)(l.c, l.r, l.d);
    current->over = true;
    give_way();
}

/* One launch that runs. */
struct Running {
    std::vector<std::unique_ptr<Block>> blocks;
    std::vector<std::unique_ptr<Fiber>> fibers;

    explicit Running(const Launch &l) {
        for (u32 y = 0; y < l.grid_y; y++)
            for (u32 x = 0; x < l.grid_x; x++) {
                auto block = std::make_unique<Block>();
                block->index = {x, y, 0}, block->grid = {l.grid_x, l.grid_y, 1};
                block->barrier.size = TS_THREADS;
                block->warps.resize(TS_THREADS / 32);
                for (u32 t = 0; t < TS_THREADS; t++) fibers.push_back(begin(*block, t, l));
                blocks.push_back(std::move(block));
            }
    }

    static std::unique_ptr<Fiber> begin(Block &block, u32 thread, const Launch &l) {
        auto fiber = std::make_unique<Fiber>();
        fiber->thread = {thread, 0, 0}, fiber->block = &block;
        fiber->stack.resize(48 << 10);
        getcontext(&fiber->context);
        fiber->context.uc_stack.ss_sp = fiber->stack.data();
        fiber->context.uc_stack.ss_size = fiber->stack.size();
        makecontext(&fiber->context, body, 0);
        entering = &l;
        resume(*fiber);
        return fiber;
    }

    static void resume(Fiber &fiber) {
        current = &fiber;
        swapcontext(&scheduler, &fiber.context);
    }

    /* Lets three of four fibers go on; says whether any is left. */
    bool turn(std::mt19937 &random) {
        bool left = false;
        for (auto &fiber : fibers) {
            if (fiber->ready() && random() % 4) resume(*fiber);
            left |= !fiber->over;
        }
        return left;
    }
};

/* Runs list[rank][0..count): a rank's launches in order, the ranks beside each other, with
 * `between` called after each turn. Returns the ranks that had not ended after `turns`. */
extern "C" u32 run_ranks(const Launch *list, u32 ranks, u32 count, u32 seed, u32 turns,
                         void (*between)()) {
    std::mt19937 random(seed);
    std::vector<std::unique_ptr<Running>> running(ranks);
    std::vector<u32> next(ranks, 0);
    u32 left = ranks;
    for (u32 i = 0; i < turns && left; i++) {
        left = 0;
        for (u32 rank = 0; rank < ranks; rank++) {
            if (!running[rank] && next[rank] < count) {
                const Launch &l = list[rank * count + next[rank]++];
                if (l.kernel) running[rank] = std::make_unique<Running>(l);
            }
            if (running[rank] && !running[rank]->turn(random)) running[rank].reset();
            left += running[rank] || next[rank] < count;
        }
        if (between) between();
    }
    return left;
}
