// bitmatmul.cu: outputs = bit matrix · inputs on tensor cores; the matrix is data, and each stripe may have its own.
//
// One warp makes one tile: the positions of 32 lane parts (lane_share.cuh) of four output blocks at a time. Bits are
// multiplied where they lie: expanded in registers (u8) or not at all (b1), and never written to memory.
//
// Built for one case by these macros:
//   PACKETS, PACKET_BYTES  the layout; PACKET_BYTES is 4 for `words`, which has none
//   HALVES                 byte columns of a symbol: 2 for w = 16, else 1 (w = 4 has two symbols in a byte)
//   COLUMNS                byte columns that a lane holds at once: K is 32 · COLUMNS bits
//   SLICED                 0: K covers all inputs. 1: inputs come in slices of K, whose products are summed
//   STAGES                 slices (or tiles) under way at once, see feed.cuh
//   PIECES                 pieces of a block that count as further blocks, so that no output column idles where r < 4
//   UNALIGNED              1: addresses may be anything. 0: they are multiples of 16 (of 4 in `packets`)
//   TABLE                  0: blocks at strides. 1: at addresses from tables
//   OPERANDS_U8            1: eight-bit MMA. 0: one-bit MMA
//   THREADS, MIN_BLOCKS    of a block, and blocks that a multiprocessor must be able to hold
#include "feed.cuh"
#if OPERANDS_U8
#include "operands_u8.cuh"
#else
#include "operands_b1.cuh"
#endif

DEVICE void load_matrix(u32 *b, const Work &k, u32 index) {
  const uint4 *from = (const uint4 *)(k.matrix + (u64)index * (Operands::WORDS * 32)) + (threadIdx.x & 31);
#pragma unroll
  for (int i = 0; i < Operands::WORDS / 4; i++) {
    const uint4 v = __ldg(from + 32 * i);
#pragma unroll
    for (int j = 0; j < 4; j++) b[4 * i + j] = part_of(v, j);
  }
}

// The lane's part of output block t of a group, in byte column `half`.
DEVICE void multiply_columns(u32 *result, const u32 (*column)[POSITIONS], const u32 *b) {
#pragma unroll
  for (int first = 0; first < POSITIONS; first += 2) {
    u32 acc[16];
    Operands::multiply(acc, column, first, b);
    result[first] = Operands::merge(acc, 0);
    result[first + 1] = Operands::merge(acc, 1);
  }
}

DEVICE void store_group(const Work &k, const Walk &walk, u32 group, i64 offset, u32 (*result)[POSITIONS]) {
  const u32 row = group * 4 + (threadIdx.x & 3);
  u32 raw[RAW];
  raw_of(raw, result);
  if (row >= k.r * PIECES) return;
  int piece = 0;
#pragma unroll
  for (int i = 1; i < PIECES; i++) piece += row >= i * k.r;
  const i64 n = share_rest(k, piece, offset);
  if (n <= 0) return;
  u8 *p = output_block(k, walk.stripe, row - piece * k.r) + piece * k.piece + offset;
  store_share(p, raw, n, walk.tile < k.whole_tiles);
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) bitmatmul(const Work k) {
  const int g = (threadIdx.x & 31) >> 2;
  const u32 groups = (k.r * PIECES + 3) / 4;
  u32 raw[SHARES][RAW], column[COLUMNS][POSITIONS], b[Operands::WORDS];
#if SLICED
  const u32 slices = (k.c * PIECES + 4 * SHARES - 1) / (4 * SHARES), turns = (groups + k.span - 1) / k.span;
  // Sums over slices lie in shared memory, lane by lane: there are too many for registers, and they are indexed.
  uint4 *const sums = shared_memory() + (STAGES > 1 ? STAGES * SHARES * (RAW / 4) * THREADS : 0) + threadIdx.x;
  constexpr int QUADS = HALVES * POSITIONS / 4;
#else
  const u32 slices = 1, turns = 1;
  u32 held = ~0u;  // the operands in b
#endif
  Cursor at(k);
  Feed feed(k, slices, turns);
  while (at.walk.more(k)) {
    const i64 offset = share_offset(at.walk.tile, g);
    const u32 matrix = k.which ? __ldg(k.which + at.walk.stripe) : 0;
#if SLICED
    const u32 base = at.turn * k.span, here = groups - base < k.span ? groups - base : k.span;
    const Walk walk = at.walk;
    for (u32 i = 0; i < here * QUADS; i++) sums[i * THREADS] = make_uint4(0, 0, 0, 0);
    for (u32 slice = 0; slice < slices; slice++) {
      feed.take(k, at, raw);
      at.next(k, slices, turns);
#pragma unroll
      for (int i = 0; i < SHARES; i++) columns_of(column + HALVES * i, raw[i]);
      for (u32 i = 0; i < here * HALVES; i++) {
        const u32 index = ((matrix * slices + slice) * groups + base) * HALVES + i;
        if (!__ldg(k.live + index)) continue;  // the same for the whole warp: a zero block costs nothing
        load_matrix(b, k, index);
        u32 result[POSITIONS];
        multiply_columns(result, column, b);
#pragma unroll
        for (int q = 0; q < POSITIONS / 4; q++) {
          uint4 *const sum = sums + (i * (POSITIONS / 4) + q) * THREADS;
          const uint4 v = *sum;
          *sum = make_uint4(v.x ^ result[4 * q], v.y ^ result[4 * q + 1], v.z ^ result[4 * q + 2], v.w ^ result[4 * q + 3]);
        }
      }
    }
    for (u32 i = 0; i < here; i++) {
      u32 result[HALVES][POSITIONS];
#pragma unroll
      for (int q = 0; q < QUADS; q++) {
        const uint4 v = sums[(i * QUADS + q) * THREADS];
#pragma unroll
        for (int j = 0; j < 4; j++) result[q / (POSITIONS / 4)][q % (POSITIONS / 4) * 4 + j] = part_of(v, j);
      }
      store_group(k, walk, base + i, offset, result);
    }
#else
    feed.take(k, at, raw);
#pragma unroll
    for (int i = 0; i < SHARES; i++) columns_of(column + HALVES * i, raw[i]);
    for (u32 group = 0; group < groups; group++) {
      u32 result[HALVES][POSITIONS];
#pragma unroll
      for (int half = 0; half < HALVES; half++) {
        const u32 index = (matrix * groups + group) * HALVES + half;
        if (index != held) {
          load_matrix(b, k, index);
          held = index;
        }
        multiply_columns(result[half], column, b);
      }
      store_group(k, at.walk, group, offset, result);
    }
    at.next(k, slices, turns);
#endif
  }
}
