// host_shim.h: just enough CUDA for g++ to run the kernels' own sources on one CPU thread.
//
// A CUDA thread is a fiber; blocks run one after another. A fiber runs until it reaches a warp or block collective, leaves
// its operands there and gives way; the last lane to arrive computes the result for all. That shows faults which a
// lane-by-lane emulation hides: lanes at different collectives (call sites are compared), lanes that leave while others
// wait (a whole round without progress), and dependence on the order of lanes (shim_reverse runs them backwards).
// Asynchronous copies are carried out only when they are waited for, over a poisoned target.
//
// Operand layouts of MMA follow the PTX manual's sections for m16n8k32 (.u8), m16n8k128 and m16n8k256 (.b1).
// shim_mutant = 1..5 breaks one of them, so that a test can show that it would notice.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define DEVICE __attribute__((unused)) inline __attribute__((always_inline))

struct uint2 { unsigned x, y; } __attribute__((aligned(8)));
struct uint4 { unsigned x, y, z, w; } __attribute__((aligned(16)));
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return uint4{x, y, z, w}; }

extern "C" {
int shim_mutant = 0;
int shim_reverse = 0;
char shim_message[256];
}

namespace shim {

struct Dim { unsigned x, y, z; };
enum Op { MMA_U8_K32, MMA_B1_K128, MMA_B1_K256, BARRIER };

struct Collective {  // one a warp, one more for the block
  int arrived;
  unsigned round;
  int site;
  Op op;
  uint32_t in[32][10], out[32][4];
};

struct Copy { void *to; const void *from; int bytes, group; };
constexpr int MOST_COPIES = 4096;

struct Fiber {
  void *stack_pointer;
  char *stack;
  int linear;
  bool done;
  Copy *copies;
  int first_copy, copies_end, group;
#if !defined(__x86_64__)
  ucontext_t context;
#endif
};

constexpr size_t STACK = 256 << 10;
static Fiber fibers[1024];
static Collective warps[32], block;
static Fiber *current;
static void *main_stack_pointer;
static Dim grid_size, block_size, block_index;
static uint64_t progress, products;
static bool failed;
static void (*body)(const void *);
static const void *arguments;
static uint4 *shared;

#if defined(__x86_64__)
asm(R"(
.text
.p2align 4
.type shim_switch,@function
shim_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
extern "C" void shim_switch(void **save, void *load) __asm__("shim_switch");
static inline void enter(Fiber *f) { current = f; shim_switch(&main_stack_pointer, f->stack_pointer); }
static inline void leave() { shim_switch(&current->stack_pointer, main_stack_pointer); }
#else
static ucontext_t main_context;
static inline void enter(Fiber *f) { current = f; swapcontext(&main_context, &f->context); }
static inline void leave() { swapcontext(&current->context, &main_context); }
#endif

static void fail(const char *why, int site) {
  if (!failed)
    snprintf(shim_message, sizeof shim_message, "%s (line or size %d, block %u, thread %d)", why, site, block_index.x,
             current ? current->linear : -1);
  failed = true;
  if (current)
    for (;;) leave();  // the launch gives up; the fiber is never entered again
}

static void trampoline() {
  body(arguments);
  current->done = true;
  progress++;
  for (;;) leave();
}

static void prepare(Fiber *f) {
  if (!f->stack) {
    f->stack = (char *)aligned_alloc(64, STACK);
    f->copies = (Copy *)malloc(MOST_COPIES * sizeof(Copy));
  }
#if defined(__x86_64__)
  void **s = (void **)(((uintptr_t)f->stack + STACK) & ~(uintptr_t)63);
  *--s = nullptr;             // keeps the stack at 8 mod 16 on entry, as after a call
  *--s = (void *)trampoline;  // returned into by the first switch
  for (int i = 0; i < 6; i++) *--s = nullptr;
  f->stack_pointer = s;
#else
  getcontext(&f->context);
  f->context.uc_stack.ss_sp = f->stack;
  f->context.uc_stack.ss_size = STACK;
  f->context.uc_link = nullptr;
  makecontext(&f->context, trampoline, 0);
#endif
  f->done = false;
  f->first_copy = f->copies_end = f->group = 0;
}

static void run_block() {
  const int threads = block_size.x;
  for (auto &w : warps) w.arrived = 0;
  block.arrived = 0;
  for (int i = 0; i < threads; i++) {
    fibers[i].linear = i;
    prepare(&fibers[i]);
  }
  for (int live = threads; live && !failed;) {
    const uint64_t before = progress;
    live = 0;
    for (int k = 0; k < threads && !failed; k++) {
      Fiber *f = &fibers[shim_reverse ? threads - 1 - k : k];
      if (f->done) continue;
      enter(f);
      live += !f->done;
    }
    current = nullptr;
    if (live && progress == before) fail("some lanes wait for a collective that others never reach", 0);
  }
  current = nullptr;
}

// 0, or 1 with the reason in shim_message.
static int launch(unsigned blocks, unsigned threads, unsigned shared_bytes, void (*kernel)(const void *), const void *args) {
  failed = false;
  current = nullptr;
  body = kernel;
  arguments = args;
  grid_size = Dim{blocks, 1, 1};
  block_size = Dim{threads, 1, 1};
  if (threads > 1024 || threads % 32) { fail("a block of a size that no device takes", (int)threads); return 1; }
  const size_t guard = 64, size = (shared_bytes + 15) & ~(size_t)15;
  char *memory = (char *)aligned_alloc(64, (size + 2 * guard + 63) & ~(size_t)63);
  shared = (uint4 *)(memory + guard);
  for (unsigned b = 0; b < blocks && !failed; b++) {
    block_index = Dim{b, 0, 0};
    memset(memory, 0xAB, size + 2 * guard);  // nothing survives from block to block, nothing starts at zero
    run_block();
    for (size_t i = 0; i < guard && !failed; i++)
      if ((uint8_t)memory[i] != 0xAB || (uint8_t)memory[guard + size + i] != 0xAB) fail("shared memory overrun", (int)i);
  }
  free(memory);
  return failed;
}

static void finish(Collective &c, Op op) {
  if (op == BARRIER) return;
  products++;
  // The operands out of the lanes: A[row][byte of K] and B[column][byte of K]; a byte is one u8 element or eight b1.
  // in[] = a0..a3, b0, b1, c0..c3; a register holds four bytes of a K half of 16 bytes in all three shapes.
  static uint8_t A[16][32], B[8][32];
  const int halves = op == MMA_B1_K128 ? 1 : 2;
  for (int l = 0; l < 32; l++) {
    const int g = l >> 2, t = l & 3;
    for (int h = 0; h < halves; h++)
      for (int i = 0; i < 4; i++) {
        int top = 2 * h, bottom = 2 * h + 1;
        if (shim_mutant == 1) {  // registers a1 and a2 (or a0 and a1) exchanged
          top = halves == 2 ? h : 1;
          bottom = halves == 2 ? h + 2 : 0;
        }
        const int row = shim_mutant == 2 ? l & 7 : g, quad = shim_mutant == 2 ? l >> 3 : t;  // A: group and lane in it
        A[row][16 * h + 4 * quad + i] = c.in[l][top] >> (8 * i);
        A[row + 8][16 * h + 4 * quad + i] = c.in[l][bottom] >> (8 * i);
        int half = h, byte = i;
        if (shim_mutant == 3) {  // B: the halves of K exchanged (for K = 128 the bytes of a register)
          half = halves - 1 - h;
          byte = halves == 1 ? 3 - i : i;
        }
        B[g][16 * half + 4 * t + byte] = c.in[l][4 + h] >> (8 * i);
      }
  }
  for (int l = 0; l < 32; l++)
    for (int r = 0; r < 4; r++) {
      int row = (l >> 2) + (r >= 2 ? 8 : 0), col = 2 * (l & 3) + (r & 1);
      if (shim_mutant == 4) col = (l & 3) + 4 * (r & 1);   // C: columns t and t + 4 for 2t and 2t + 1
      if (shim_mutant == 5) row = 2 * (l >> 2) + (r >= 2);  // C: rows 2g and 2g + 1 for g and g + 8
      uint32_t sum = c.in[l][6 + r];
      if (op == MMA_U8_K32) {
        for (int k = 0; k < 32; k++) sum += (uint32_t)A[row][k] * B[col][k];
      } else {
        for (int k = 0; k < 16 * halves; k += 8) {
          uint64_t a, b;
          memcpy(&a, &A[row][k], 8);
          memcpy(&b, &B[col][k], 8);
          sum += (uint32_t)__builtin_popcountll(a & b);
        }
      }
      c.out[l][r] = sum;
    }
}

static inline Collective &collective(Op op, int site, const uint32_t *operands) {
  const int lane = current->linear & 31;
  Collective &c = op == BARRIER ? block : warps[current->linear >> 5];
  const int width = op == BARRIER ? (int)block_size.x : 32;
  if (c.arrived == 0) {
    c.site = site;
    c.op = op;
  } else if (c.site != site || c.op != op) {
    fail("lanes of a warp are at different collectives", site);
  }
  if (operands) memcpy(c.in[lane], operands, sizeof c.in[lane]);
  progress++;
  if (++c.arrived == width) {
    finish(c, op);
    c.arrived = 0;
    c.round++;
  } else {
    for (const unsigned round = c.round; c.round == round;) leave();
  }
  return c;
}

static void queue_copy(void *to, const void *from, int bytes) {
  Fiber *f = current;
  if ((uintptr_t)to % bytes || (uintptr_t)from % bytes) fail("misaligned asynchronous copy", bytes);
  if (f->copies_end == MOST_COPIES) {
    memmove(f->copies, f->copies + f->first_copy, (f->copies_end - f->first_copy) * sizeof(Copy));
    f->copies_end -= f->first_copy;
    f->first_copy = 0;
  }
  if (f->copies_end == MOST_COPIES) fail("too many copies under way", MOST_COPIES);
  memset(to, 0xCD, bytes);
  f->copies[f->copies_end++] = Copy{to, from, bytes, f->group};
}
static void finish_copies(int pending) {
  Fiber *f = current;
  for (; f->first_copy < f->copies_end && f->copies[f->first_copy].group < f->group - pending; f->first_copy++) {
    const Copy &c = f->copies[f->first_copy];
    memcpy(c.to, c.from, c.bytes);
  }
}

static inline uint64_t launched_products() { return products; }

}  // namespace shim

#define threadIdx (shim::Dim{(unsigned)shim::current->linear, 0, 0})
#define blockIdx shim::block_index
#define blockDim shim::block_size
#define gridDim shim::grid_size
#define __syncthreads() ((void)shim::collective(shim::BARRIER, __LINE__, nullptr))

static inline uint4 *shared_memory() { return shim::shared; }

static inline u32 __funnelshift_r(u32 low, u32 high, u32 shift) { return (u32)(((u64)high << 32 | low) >> (shift & 31)); }

template <class T> static inline T __ldg(const T *p) {
  if ((uintptr_t)p % sizeof(T)) shim::fail("misaligned load", (int)sizeof(T));
  return *p;
}
#ifndef GFCODE_NO_PTX
static inline u32 xor3(u32 a, u32 b, u32 c) { return a ^ b ^ c; }
static inline u32 select_bits(u32 mask, u32 a, u32 b) { return (a & mask) | (b & ~mask); }
static inline u32 permute_bytes(u32 a, u32 b, u32 selector) {
  const u64 pair = (u64)b << 32 | a;
  u32 result = 0;
  for (int i = 0; i < 4; i++) {
    const u32 n = selector >> (4 * i) & 15;
    if (n & 8) shim::fail("the sign mode of a byte permutation", (int)selector);
    result |= (u32)(pair >> (8 * (n & 7)) & 255) << (8 * i);
  }
  return result;
}
template <class T> static inline T load_once(const u8 *p) { return __ldg((const T *)p); }
template <class T> static inline void store_once(u8 *p, T v) {
  if ((uintptr_t)p % sizeof(T)) shim::fail("misaligned store", (int)sizeof(T));
  *(T *)p = v;
}
#endif

static inline void copy_async(uint4 *to, const u8 *from) { shim::queue_copy(to, from, 16); }
static inline void copy_async(u32 *to, const u8 *from) { shim::queue_copy(to, from, 4); }
static inline void commit_copies() { shim::current->group++; }
template <int PENDING> static inline void wait_copies() { shim::finish_copies(PENDING); }

#define SHIM_MMA(op, a0, a1, a2, a3, b0, b1)                                             \
  {                                                                                      \
    const u32 operands[10] = {a0, a1, a2, a3, b0, b1, d[0], d[1], d[2], d[3]};           \
    const int lane = shim::current->linear & 31;                                         \
    const shim::Collective &c = shim::collective(op, site, operands);                    \
    for (int i = 0; i < 4; i++) d[i] = c.out[lane][i];                                   \
  }
static inline void shim_mma_u8_k32(int site, u32 *d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1)
    SHIM_MMA(shim::MMA_U8_K32, a0, a1, a2, a3, b0, b1)
static inline void shim_mma_b1_k256(int site, u32 *d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1)
    SHIM_MMA(shim::MMA_B1_K256, a0, a1, a2, a3, b0, b1)
static inline void shim_mma_b1_k128(int site, u32 *d, u32 a0, u32 a1, u32 b0)
    SHIM_MMA(shim::MMA_B1_K128, a0, a1, 0, 0, b0, 0)
#define mma_u8_k32(...) shim_mma_u8_k32(__LINE__, __VA_ARGS__)
#define mma_b1_k256(...) shim_mma_b1_k256(__LINE__, __VA_ARGS__)
#define mma_b1_k128(...) shim_mma_b1_k128(__LINE__, __VA_ARGS__)
