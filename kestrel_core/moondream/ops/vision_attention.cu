// Attention of the vision encoder: every patch of a crop sees all patches of its crop, in heads of an odd width.
//
// One warpgroup brings rows of q, k and v into shared memory; the others multiply, 64 queries each. A head's width
// of 72 is 80 to the first product, which takes 16 columns at a time, and 72 to the second. Nothing is padded in
// memory: the copies fill with zeros what lies outside of a head or a crop. Keys come in tiles, the incomplete one
// first: it alone needs a mask, and nothing is there yet that it would have to rescale.
//
// What is compiled is chosen by macros, so that a GPU can be asked which is fastest:
//   CONSUMERS    warpgroups that multiply
//   KEYS         keys in a tile
//   STAGES       tiles in shared memory at a time
//   CHAINED      a unit of work begins while the one before it ends
//   TURNS        warpgroups issue their products in turns
//   FLOAT8       results are rounded to e4m3 under a scale, not to bfloat16
// and HEADS, PATCHES, WIDTH and SCALE, which are the encoder's, and SHARED_BYTES, which a block has. The instructions
// are in hopper.cuh.

static_assert(WIDTH > 64 && WIDTH <= 80 && WIDTH % 8 == 0, "a head is 64 columns and a tail of at most 16");
static_assert(KEYS % 16 == 0 && KEYS <= 256, "a tile of keys is a box of the copies and a multiple of a product's depth");

constexpr int kQueries = 64 * CONSUMERS;                      // of a unit of work
constexpr int kUnitsPerHead = (PATCHES + kQueries - 1) / kQueries;
constexpr int kWholeTiles = PATCHES / KEYS;
constexpr int kLastKeys = PATCHES - kWholeTiles * KEYS;       // in the incomplete tile
constexpr int kLast = (kLastKeys + 15) / 16 * 16;
static_assert(kLastKeys > 0 && kWholeTiles >= 2, "there is an incomplete tile, and two others");

constexpr int kMainBytes = 128;                               // of a row: 64 columns, swizzled over 128 bytes
constexpr int kTailBytes = 32;                                // and 16 more, swizzled over 32
constexpr int kValueBoxes = 2;                                // of v: 64 columns each, the second one zeros from WIDTH on

constexpr int aligned(int bytes) { return (bytes + 1023) / 1024 * 1024; }  // where the widest swizzle starts anew
constexpr int kQueryStages = 2;
constexpr int kQueryTail = aligned(kQueries * kMainBytes);    // offsets inside of a stage
constexpr int kQueryStage = kQueryTail + aligned(kQueries * kTailBytes);
constexpr int kKeyTail = aligned(KEYS * kMainBytes);
constexpr int kValueBox = KEYS * kMainBytes;
constexpr int kValueStart = kKeyTail + aligned(KEYS * kTailBytes);
constexpr int kStage = kValueStart + aligned(kValueBoxes * kValueBox);
constexpr int kStagesStart = kQueryStages * kQueryStage;
constexpr int kBarriersStart = kStagesStart + STAGES * kStage;
constexpr int kSharedBytes = kBarriersStart + 8 * (2 * kQueryStages + 4 * STAGES) + 1024;  // 1024 to align them
static_assert(kSharedBytes <= SHARED_BYTES, "a block has 227 KiB");

constexpr int kThreads = 128 * (CONSUMERS + 1);
constexpr float kLog2E = 1.4426950408889634f;

// Stages are used in turn: which is next, and how often the barriers have turned.
template <int COUNT>
struct Ring {
  u32 index = 0, phase = 0;
  __device__ __forceinline__ void advance() {
    if (++index == COUNT) { index = 0; phase ^= 1; }
  }
};

struct Barriers {
  u32 start;
  __device__ __forceinline__ u32 queries_full(u32 i) const { return start + 8 * i; }
  __device__ __forceinline__ u32 queries_empty(u32 i) const { return start + 8 * (kQueryStages + i); }
  __device__ __forceinline__ u32 keys_full(u32 i) const { return start + 8 * (2 * kQueryStages + i); }
  __device__ __forceinline__ u32 keys_empty(u32 i) const { return start + 8 * (2 * kQueryStages + STAGES + i); }
  __device__ __forceinline__ u32 values_full(u32 i) const { return start + 8 * (2 * kQueryStages + 2 * STAGES + i); }
  __device__ __forceinline__ u32 values_empty(u32 i) const { return start + 8 * (2 * kQueryStages + 3 * STAGES + i); }
};

// Products.

struct Queries {
  u32 main, tail;
};

// 64 queries times N keys, over 80 columns.
template <int N>
__device__ __forceinline__ void score(float (&s)[N / 2], const Queries& q, u32 keys) {
  const u64 main = matrix(keys, kSwizzle128, kMainBytes), tail = matrix(keys + kKeyTail, kSwizzle32, kTailBytes);
  const u64 q_main = matrix(q.main, kSwizzle128, kMainBytes), q_tail = matrix(q.tail, kSwizzle32, kTailBytes);
#pragma unroll
  for (int step = 0; step < 4; ++step) product(s, further(q_main, 32 * step), further(main, 32 * step), step > 0);
  product(s, q_tail, tail, true);
}

// Adds N weighted rows of v, or begins with them.
template <int N>
__device__ __forceinline__ void mix(float (&o)[WIDTH / 2], const u32 (&p)[KEYS / 4], u32 values, bool add) {
  const u64 rows = matrix(values, kSwizzle128, kMainBytes, kValueBox);
#pragma unroll
  for (int step = 0; step < N / 16; ++step) {
    const u64 b = further(rows, 16 * kMainBytes * step);
    product_across(o, p[4 * step], p[4 * step + 1], p[4 * step + 2], p[4 * step + 3], b, add || step > 0);
  }
}

// Softmax.

// A thread has two rows of a product, eight apart, and in each of them two of every eight columns; the four threads
// of a quad share them. `most` and `sum` are of those rows; sums stay the thread's own until the end.
struct Rows {
  float most[2], sum[2], shrink[2];
};

// From scores to weights, under the largest score up to now. Before the first tile there is none.
template <int N, bool FIRST>
__device__ __forceinline__ void weigh(float (&s)[N / 2], Rows& rows) {
  const float scale = SCALE * kLog2E;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float even = s[2 * row], odd = s[2 * row + 1];
#pragma unroll
    for (int block = 1; block < N / 8; ++block) {
      even = fmaxf(even, s[4 * block + 2 * row]);
      odd = fmaxf(odd, s[4 * block + 2 * row + 1]);
    }
    float top = fmaxf(even, odd);
    top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFF, top, 1));
    top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFF, top, 2));
    if (!FIRST) {
      top = fmaxf(top, rows.most[row]);
      rows.shrink[row] = exp2_of((rows.most[row] - top) * scale);
      rows.sum[row] *= rows.shrink[row];
    }
    rows.most[row] = top;
  }
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const float base = rows.most[row] * scale;
    float even = 0, odd = 0;
#pragma unroll
    for (int block = 0; block < N / 8; ++block) {
      const int i = 4 * block + 2 * row;
      s[i] = exp2_of(__fmaf_rn(s[i], scale, -base));
      s[i + 1] = exp2_of(__fmaf_rn(s[i + 1], scale, -base));
      even += s[i];
      odd += s[i + 1];
    }
    rows.sum[row] = FIRST ? even + odd : rows.sum[row] + (even + odd);
  }
}

// Weights as the left side of a product: its pairs of columns are the ones a thread has.
template <int N>
__device__ __forceinline__ void pack(u32 (&p)[KEYS / 4], const float (&s)[N / 2]) {
#pragma unroll
  for (int i = 0; i < N / 4; ++i) p[i] = two_bfloat16(s[2 * i], s[2 * i + 1]);
}

__device__ __forceinline__ void shrink(float (&o)[WIDTH / 2], const Rows& rows) {
#pragma unroll
  for (int i = 0; i < WIDTH / 2; ++i) o[i] *= rows.shrink[i / 2 % 2];
}

// The two sides.

__device__ __forceinline__ void bring(
    const TensorMap& q_map, const TensorMap& q_tail_map, const TensorMap& k_map, const TensorMap& k_tail_map,
    const TensorMap& v_map, u32 shared, const Barriers& barriers, int units) {
  Ring<STAGES> stage;
  Ring<kQueryStages> query;
  for (int unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const int head = unit / kUnitsPerHead % HEADS, crop = unit / kUnitsPerHead / HEADS;
    wait(barriers.queries_empty(query.index), query.phase ^ 1);
    const u32 q = shared + query.index * kQueryStage, q_full = barriers.queries_full(query.index);
    expect(q_full, kQueries * (kMainBytes + kTailBytes));
    copy(q_map, q, q_full, 0, head, unit % kUnitsPerHead * kQueries, crop);
    copy(q_tail_map, q + kQueryTail, q_full, 64, head, unit % kUnitsPerHead * kQueries, crop);
    query.advance();
    for (int tile = kWholeTiles; tile >= 0; --tile) {  // the incomplete one is the first
      const u32 start = shared + kStagesStart + stage.index * kStage;
      const u32 k_full = barriers.keys_full(stage.index), v_full = barriers.values_full(stage.index);
      wait(barriers.keys_empty(stage.index), stage.phase ^ 1);
      expect(k_full, KEYS * (kMainBytes + kTailBytes));
      copy(k_map, start, k_full, 0, HEADS + head, tile * KEYS, crop);
      copy(k_tail_map, start + kKeyTail, k_full, 64, HEADS + head, tile * KEYS, crop);
      wait(barriers.values_empty(stage.index), stage.phase ^ 1);
      expect(v_full, kValueBoxes * kValueBox);
      for (int box = 0; box < kValueBoxes; ++box)
        copy(v_map, start + kValueStart + box * kValueBox, v_full, box * 64, 2 * HEADS + head, tile * KEYS, crop);
      stage.advance();
    }
  }
}

__device__ __forceinline__ void await_turn(int group) {
#if TURNS
  named_sync(1 + group, 256);
#endif
}

__device__ __forceinline__ void pass_turn(int group) {
#if TURNS
  named_arrive(1 + (group + 1) % CONSUMERS, 256);
#endif
}

__device__ __forceinline__ void release(u32 barrier) {
  if (threadIdx.x % 32 == 0) arrive(barrier);  // each warp's products are complete when its own wait is
}

struct Consumer {
  u32 shared;
  Barriers barriers;
  int group;
  Ring<kQueryStages> queries;
  Ring<STAGES> keys, values;
  Queries q;
  Rows rows;

  __device__ __forceinline__ u32 keys_at() const { return shared + kStagesStart + keys.index * kStage; }
  __device__ __forceinline__ u32 values_at() const {
    return shared + kStagesStart + values.index * kStage + kValueStart;
  }
  __device__ __forceinline__ void keys_done() { release(barriers.keys_empty(keys.index)); keys.advance(); }
  __device__ __forceinline__ void values_done() { release(barriers.values_empty(values.index)); values.advance(); }
  __device__ __forceinline__ void queries_done() { release(barriers.queries_empty(queries.index)); queries.advance(); }

  // The queries of the next unit, which are needed until its last scores are there.
  __device__ __forceinline__ void take() {
    const u32 start = shared + queries.index * kQueryStage;
    wait(barriers.queries_full(queries.index), queries.phase);
    q.main = start + group * 64 * kMainBytes;
    q.tail = start + kQueryTail + group * 64 * kTailBytes;
  }

  // Weights of the incomplete tile, with which a unit begins.
  __device__ __forceinline__ void weigh_first(float (&s)[kLast / 2]) {
    const int column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < kLast / 2; ++i) {
      const int start = i / 4 * 8 + i % 2;
      if (start + 6 >= kLastKeys) s[i] = start + column < kLastKeys ? s[i] : -INFINITY;
    }
    weigh<kLast, true>(s, rows);
  }

  __device__ __forceinline__ void first(u32 (&p)[KEYS / 4]) {
    float s[kLast / 2];
    wait(barriers.keys_full(keys.index), keys.phase);
    products_begin();
    score<kLast>(s, q, keys_at());
    products_commit();
    products_wait<0>();
    settled(s);
    keys_done();
    weigh_first(s);
    pack<kLast>(p, s);
  }

  // The next tile's scores, together with the BEFORE weights in p times their values.
  template <int N, int BEFORE>
  __device__ __forceinline__ void both(float (&s)[N / 2], float (&o)[WIDTH / 2], u32 (&p)[KEYS / 4], bool add) {
    wait(barriers.keys_full(keys.index), keys.phase);
    await_turn(group);
    products_begin();
    score<N>(s, q, keys_at());
    products_commit();
    wait(barriers.values_full(values.index), values.phase);
    products_begin();
    mix<BEFORE>(o, p, values_at(), add);
    products_commit();
    pass_turn(group);
    products_wait<0>();
    settled(s);
    settled(o);
    keys_done();
    values_done();
  }

  template <int BEFORE>
  __device__ __forceinline__ void next(float (&o)[WIDTH / 2], u32 (&p)[KEYS / 4], bool add) {
    float s[KEYS / 2];
    both<KEYS, BEFORE>(s, o, p, add);
    weigh<KEYS, false>(s, rows);
    shrink(o, rows);
    pack<KEYS>(p, s);
  }

  // From one unit to the next: its first scores go with the last products of this one.
  __device__ __forceinline__ void chain(float (&o)[WIDTH / 2], u32 (&p)[KEYS / 4], float (&sums)[2]) {
    float s[kLast / 2];
    both<kLast, KEYS>(s, o, p, true);
    sums[0] = rows.sum[0];
    sums[1] = rows.sum[1];
    weigh_first(s);
    pack<kLast>(p, s);
  }

  // The last weights of a unit times their values.
  __device__ __forceinline__ void last(float (&o)[WIDTH / 2], u32 (&p)[KEYS / 4]) {
    wait(barriers.values_full(values.index), values.phase);
    products_begin();
    mix<KEYS>(o, p, values_at(), true);
    products_commit();
    products_wait<0>();
    settled(o);
    values_done();
  }

  __device__ __forceinline__ void work(void* out, int units, float scale) {
    float o[WIDTH / 2];
    u32 p[KEYS / 4];
    int unit = blockIdx.x;
    take();
    first(p);
    while (true) {
      const int following = unit + gridDim.x;
      next<kLast>(o, p, false);
#pragma unroll 1
      for (int tile = 1; tile < kWholeTiles; ++tile) next<KEYS>(o, p, true);
      queries_done();
      if (CHAINED && following < units) {
        float sums[2];
        take();
        chain(o, p, sums);
        write(o, sums, out, unit, scale);
      } else {
        last(o, p);
        write(o, rows.sum, out, unit, scale);
        if (following >= units) return;
        take();
        first(p);
      }
      unit = following;
    }
  }

  __device__ __forceinline__ void write(
      const float (&o)[WIDTH / 2], const float (&sums)[2], void* out, int unit, float scale) {
    const int head = unit / kUnitsPerHead % HEADS, crop = unit / kUnitsPerHead / HEADS;
    const int start = unit % kUnitsPerHead * kQueries + group * 64;
    const int lane = threadIdx.x % 32;
    float factor[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float sum = sums[row];
      sum += __shfl_xor_sync(0xFFFFFFFF, sum, 1);
      sum += __shfl_xor_sync(0xFFFFFFFF, sum, 2);
      factor[row] = __fdividef(scale, sum);
    }
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int patch = start + threadIdx.x / 32 % 4 * 16 + row * 8 + lane / 4;
      if (patch < PATCHES) {
        const long long at = ((long long)crop * PATCHES + patch) * (HEADS * WIDTH) + head * WIDTH + lane % 4 * 2;
#pragma unroll
        for (int block = 0; block < WIDTH / 8; ++block) {
          const float low = o[4 * block + 2 * row] * factor[row], high = o[4 * block + 2 * row + 1] * factor[row];
#if FLOAT8
          *reinterpret_cast<unsigned short*>(static_cast<char*>(out) + at + 8 * block) = two_float8(low, high);
#else
          *reinterpret_cast<u32*>(static_cast<char*>(out) + 2 * (at + 8 * block)) = two_bfloat16(low, high);
#endif
        }
      }
    }
  }
};

// `scale` multiplies the results: 1, or for float8 the reciprocal of their scale.
extern "C" __global__ void __launch_bounds__(kThreads, 1) vision_attention(
    const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap q_tail_map,
    const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap k_tail_map,
    const __grid_constant__ TensorMap v_map, void* out, int units, float scale) {
  extern __shared__ char memory[];
  const u32 shared = (shared_address(memory) + 1023) & ~1023u;
  const Barriers barriers{shared + kBarriersStart};
  if (threadIdx.x == 0) {
    for (int i = 0; i < kQueryStages; ++i) {
      make_barrier(barriers.queries_full(i), 1);
      make_barrier(barriers.queries_empty(i), 4 * CONSUMERS);
    }
    for (int i = 0; i < STAGES; ++i) {
      make_barrier(barriers.keys_full(i), 1);
      make_barrier(barriers.values_full(i), 1);
      make_barrier(barriers.keys_empty(i), 4 * CONSUMERS);
      make_barrier(barriers.values_empty(i), 4 * CONSUMERS);
    }
    barriers_made();
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    fewer_registers<CONSUMERS == 2 ? 24 : 32>();
    if (threadIdx.x == 0) bring(q_map, q_tail_map, k_map, k_tail_map, v_map, shared, barriers, units);
  } else {
    more_registers<CONSUMERS == 2 ? 240 : 160>();
    Consumer consumer;
    consumer.group = threadIdx.x / 128 - 1;
    consumer.shared = shared;
    consumer.barriers = barriers;
    if (consumer.group == CONSUMERS - 1) pass_turn(consumer.group);  // so that the first one's turn comes
    consumer.work(out, units, scale);
  }
}
