// What hopper.cuh offers, on a CPU: a kernel's threads are fibers that take turns whenever one has to wait.
//
// It knows the layouts that Hopper documents (swizzled boxes, matrices in shared memory, registers of products) and
// nothing of the kernel under test. Products run as late as they may, at the wait for them, so that memory released
// too early and results read too early show.

#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#define __device__
#define __forceinline__ inline
#define __global__
#define __constant__
#define __shared__
#define __grid_constant__
#define __launch_bounds__(...)

typedef unsigned int u32;
typedef unsigned long long u64;
struct alignas(64) TensorMap { u64 words[16]; };  // here: address, 4 sizes, 3 strides, 4 sides of a box, swizzle

struct Index { int x; };
static Index blockIdx, gridDim;
constexpr int kMaxShared = 232448;
alignas(1024) char memory[kMaxShared];

// Fibers.

struct Product {
  float* d;
  int columns;
  bool across, add;  // across: a is in registers, and rows of b are those of the memory
  u64 a, b;
  int number;
};
struct Fiber {
  ucontext_t context;
  std::vector<char> stack;
  bool done = false;
  int issued = 0;
  std::vector<Product> open;
  std::deque<std::vector<Product>> committed;
};
static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static int current;
static long long progress;  // counts what may let others go on

static int thread_index() { return current; }
struct ThreadIndex {
  struct { operator int() const { return thread_index(); } } x;
};
static ThreadIndex threadIdx;

inline void yield() { swapcontext(&fibers[current].context, &scheduler); }
inline void fail(const char* what) { std::fprintf(stderr, "thread %d: %s\n", current, what); std::exit(1); }

// Exchanges among the threads of a group: each leaves a value and goes on when all have.

struct Meeting { std::vector<u32> values; int count = 0; };
static std::map<std::pair<int, long long>, Meeting> meetings;
static std::map<std::pair<int, int>, long long> visits;

inline const std::vector<u32>& meet(int group, int first, int size, u32 value) {
  const long long visit = visits[{group, current}]++;
  Meeting& meeting = meetings[{group, visit}];
  if (meeting.values.empty()) meeting.values.resize(size);
  meeting.values[current - first] = value;
  ++meeting.count;
  ++progress;
  while (meeting.count < size) yield();
  return meeting.values;
}

inline float __shfl_xor_sync(u32, float value, int mask) {
  const int warp = current / 32, lane = current % 32;
  u32 bits;
  std::memcpy(&bits, &value, 4);
  const u32 other = meet(warp, warp * 32, 32, bits)[lane ^ mask];
  std::memcpy(&value, &other, 4);
  return value;
}
inline void __syncthreads() { meet(1000, 0, int(fibers.size()), 0); }

struct Named { int count = 0; long long turn = 0; };
static std::map<int, Named> named;
inline void named_arrive(int barrier, int threads) {
  ++progress;
  if (++named[barrier].count == threads) { named[barrier].count = 0; ++named[barrier].turn; }
}
inline void named_sync(int barrier, int threads) {
  const long long turn = named[barrier].turn;
  named_arrive(barrier, threads);
  while (named[barrier].turn == turn) yield();
}

// Barriers in shared memory, and copies.

struct Barrier { int count = 0, pending = 0; long long bytes = 0; u32 phase = 0; };
static std::map<u32, Barrier> barriers;
inline Barrier& barrier_at(u32 address) {
  if (!barriers.count(address)) fail("no such barrier");
  return barriers[address];
}
inline void turn_if_complete(Barrier& barrier) {
  ++progress;
  if (barrier.pending < 0) fail("more arrivals than a barrier expects");
  if (barrier.pending == 0 && barrier.bytes == 0) { barrier.pending = barrier.count; barrier.phase ^= 1; }
}
inline void make_barrier(u32 address, int count) {
  if (address % 8) fail("barrier out of line");
  barriers[address] = Barrier{count, count, 0, 0};
}
inline void barriers_made() {}
inline void wait(u32 address, u32 parity) { while (barrier_at(address).phase == parity) yield(); }
inline void arrive(u32 address) { --barrier_at(address).pending; turn_if_complete(barrier_at(address)); }
inline void expect(u32 address, u32 bytes) { barrier_at(address).bytes += bytes; arrive(address); }

inline u32 swizzled(u32 address, u64 kind) {  // kinds as matrices name them: 1, 2, 3 for 128, 64, 32 bytes
  const u32 chunks = kind == 1 ? 7 : kind == 2 ? 3 : kind == 3 ? 1 : 0;
  return address ^ (address >> 7 & chunks) << 4;
}

inline void copy(const TensorMap& map, u32 to, u32 barrier, int x, int y, int z, int w) {
  const char* from = reinterpret_cast<const char*>(map.words[0]);
  const u64 *sizes = map.words + 1, *strides = map.words + 5, *box = map.words + 8, kind = 4 - map.words[12];
  if (to % 128 || box[0] * 2 > 256 >> kind || box[2] > 256) fail("a box that no copy takes");
  u32 at = to;
  for (u64 iw = 0; iw < box[3]; ++iw)
    for (u64 iz = 0; iz < box[2]; ++iz)
      for (u64 iy = 0; iy < box[1]; ++iy)
        for (u64 ix = 0; ix < box[0]; ++ix, at += 2) {
          const u64 cx = x + ix, cy = y + iy, cz = z + iz, cw = w + iw;
          const bool inside = cx < sizes[0] && cy < sizes[1] && cz < sizes[2] && cw < sizes[3];
          uint16_t value = 0;
          if (inside) std::memcpy(&value, from + cx * 2 + cy * strides[0] + cz * strides[1] + cw * strides[2], 2);
          if (at + 2 > kMaxShared) fail("a copy past shared memory");
          std::memcpy(memory + swizzled(at, kind), &value, 2);
        }
  barrier_at(barrier).bytes -= at - to;
  turn_if_complete(barrier_at(barrier));
}

inline u32 shared_address(const void*) { return 0; }
template <int COUNT> inline void fewer_registers() {}
template <int COUNT> inline void more_registers() {}

// Numbers.

inline float of_bfloat16(uint16_t bits) {
  const u32 wide = u32(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}
inline u32 to_bfloat16(float value) {
  u32 bits;
  std::memcpy(&bits, &value, 4);
  return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}
inline u32 two_bfloat16(float low, float high) { return to_bfloat16(low) | to_bfloat16(high) << 16; }
inline unsigned short two_float8(float, float) { fail("float8 is not emulated"); return 0; }
inline float exp2_of(float x) { return std::exp2(x); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fdividef(float a, float b) { return a / b; }

// Products.

constexpr u64 kSwizzle128 = 1, kSwizzle32 = 3;
inline u64 matrix(u32 address, u64 swizzle, int span, int boxes = 16) {
  if (address % (8 * span)) fail("a matrix that does not start where its swizzle does");
  return u64(address >> 4 | u32(boxes >> 4) << 16) | u64(8 * span >> 4) << 32 | swizzle << 62;
}
inline u64 further(u64 matrix, u32 bytes) { return matrix + (bytes >> 4); }

inline float element(u64 matrix, int row, int column, bool across) {  // across: rows are those of the memory
  const u32 start = (matrix & 0x3FFF) << 4, leading = (matrix >> 16 & 0x3FFF) << 4, stride = (matrix >> 32 & 0x3FFF) << 4;
  const u64 kind = matrix >> 62;
  const u32 span = 256u >> kind;
  u32 at;
  if (across) at = start + row / 8 * stride + row % 8 * span + column / (span / 2) * leading + column % (span / 2) * 2;
  else at = start + column / 8 * stride + column % 8 * span + row * 2;
  uint16_t bits;
  std::memcpy(&bits, memory + swizzled(at, kind), 2);
  return of_bfloat16(bits);
}

struct Left { u32 parts[128][4]; int count = 0; };
static std::map<std::pair<int, int>, Left> lefts;  // by warpgroup and number of the product

inline void issue(float* d, int columns, bool across, bool add, u64 a, u64 b) {
  Fiber& fiber = fibers[current];
  fiber.open.push_back({d, columns, across, add, a, b, fiber.issued++});
}
template <int N>
inline void product(float (&d)[N], u64 a, u64 b, bool add) { issue(d, 2 * N, false, add, a, b); }
template <int N>
inline void product_across(float (&d)[N], u32 a0, u32 a1, u32 a2, u32 a3, u64 b, bool add) {
  Left& left = lefts[{current / 128, fibers[current].issued}];
  const u32 parts[4] = {a0, a1, a2, a3};
  std::memcpy(left.parts[current % 128], parts, 16);
  ++left.count;
  ++progress;
  issue(d, 2 * N, true, add, 0, b);
}

inline void run(const Product& p) {
  const int thread = current % 128, lane = thread % 32;
  Left* left = nullptr;
  if (p.across) {
    left = &lefts[{current / 128, p.number}];
    while (left->count < 128) yield();
  }
  for (int half = 0; half < 2; ++half) {
    const int row = thread / 32 * 16 + lane / 4 + 8 * half;
    float a[16];
    for (int k = 0; k < 16; ++k) {
      if (p.across) {
        const u32 both = left->parts[thread / 4 * 4 + k % 8 / 2][half + (k >= 8 ? 2 : 0)];
        a[k] = of_bfloat16(uint16_t(k % 2 ? both >> 16 : both));
      } else {
        a[k] = element(p.a, k, row, false);
      }
    }
    for (int block = 0; block < p.columns / 8; ++block)
      for (int i = 0; i < 2; ++i) {
        float& d = p.d[4 * block + 2 * half + i];
        float sum = p.add ? d : 0;
        for (int k = 0; k < 16; ++k) sum += a[k] * element(p.b, k, 8 * block + lane % 4 * 2 + i, p.across);
        d = sum;
      }
  }
}

inline void products_begin() {}
inline void products_commit() {
  fibers[current].committed.push_back(std::move(fibers[current].open));
  fibers[current].open.clear();
}
template <int PENDING>
inline void products_wait() {
  Fiber& fiber = fibers[current];
  while (fiber.committed.size() > PENDING) {
    const std::vector<Product> group = fiber.committed.front();
    fiber.committed.pop_front();
    for (const Product& product : group) run(product);
  }
}
template <int N> inline void settled(float (&)[N]) {}

// One block at a time.

static void (*kernel_body)();
static void fiber_main() {
  kernel_body();
  fibers[current].done = true;
  ++progress;
  yield();
}

inline void run_block(int threads, void (*body)()) {
  kernel_body = body;
  meetings.clear(), visits.clear(), named.clear(), barriers.clear(), lefts.clear();
  for (size_t i = 0; i + 2 <= sizeof(memory); i += 2) memory[i] = char(0xC0), memory[i + 1] = char(0x7F);  // NaN
  fibers = std::vector<Fiber>(threads);
  for (Fiber& fiber : fibers) {
    fiber.stack.resize(1 << 16);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, fiber_main, 0);
  }
  for (int left = threads; left > 0;) {
    const long long before = progress;
    left = 0;
    for (current = 0; current < threads; ++current) {
      if (fibers[current].done) continue;
      ++left;
      swapcontext(&scheduler, &fibers[current].context);
    }
    if (left > 0 && progress == before) fail("all threads wait");
  }
}
