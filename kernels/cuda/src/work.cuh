// work.cuh: what a launch is told, and how warps share it out.
#pragma once
#include "primitives.cuh"

// Mirrored field by field by gfcode.kernels.cuda.work.Work.
struct Work {
  const u8 *in;             // block 0 of stripe 0; the next ones lie at byte strides ...
  u8 *out;
  const u64 *in_table;      // ... or, in kernels built with TABLE, at addresses [stripe][block]
  const u64 *out_table;
  i64 in_stripe, in_block;  // byte strides
  i64 out_stripe, out_block;
  i64 length;               // bytes of a block
  i64 piece;                // bytes of a piece of a block (bitmatmul): a whole number of tiles; the last may be shorter
  const u32 *matrix;        // operands (bitmatmul), in the order of operands.py
  const u8 *live;           // for each set of operands, whether it has a one
  const u32 *which;         // the matrix of each stripe, or null: all use matrix 0
  u32 c, r;                 // input and output blocks of a stripe
  u32 stripes;
  u32 tiles;                // tiles of a piece; a tile is what a warp does at once
  u32 whole_tiles;          // the first so many tiles are whole in every piece
  u32 step_stripe, step_tile;  // warps of the grid = step_stripe * tiles + step_tile
  u32 span;                 // groups of output blocks summed in shared memory at once (bitmatmul, sliced)
};

// A warp's way through all tiles of all stripes, in steps of the number of warps. A persistent grid divides once, here.
struct Walk {
  u32 stripe, tile;

  DEVICE explicit Walk(const Work &k) {
    const u32 warp = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    stripe = warp / k.tiles;
    tile = warp - stripe * k.tiles;
  }
  DEVICE bool more(const Work &k) const { return stripe < k.stripes; }
  DEVICE void next(const Work &k) {
    stripe += k.step_stripe;
    tile += k.step_tile;
    if (tile >= k.tiles) {
      tile -= k.tiles;
      stripe++;
    }
  }
};
