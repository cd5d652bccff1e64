/* Preloaded into a process, counts its system calls on files below one directory, and at call N of some kinds ends the
 * process, sends it a signal, lets the call fail, do half its work or return wrong bytes, or changes another file.
 *
 * State lies in shared memory, so that a parent can read it when the process is gone. Python arms it through ctypes.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { OPEN = 1, CREATE = 2, READ = 4, WRITE = 8, SYNC = 16, RENAME = 32, LINK = 64, UNLINK = 128, ALLOC = 256,
       DIRECTORY = 512, ATTRIBUTES = 1024, LIST = 2048 };
enum { COUNT, SIGNAL_BEFORE, SIGNAL_AFTER, FAIL, FAIL_FROM, SHORT, GARBLE, TRUNCATE, APPEND, REMOVE, REWRITE };

struct state {
  atomic_long calls;
  atomic_int fired;
  double fired_at;
};

#define FILES 4096
static struct state *state;
static char prefix[4096], victim[4096];
static unsigned kinds;
static int action, parameter, armed;
static long at;
static atomic_char watched[FILES];

#define REAL(type, name, ...)                                  \
  static type (*real_##name)(__VA_ARGS__);                     \
  if (!real_##name) *(void **)&real_##name = dlsym(RTLD_NEXT, #name)

__attribute__((visibility("default"))) int fault_setup(void) {
  state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return state == MAP_FAILED ? -1 : 0;
}

__attribute__((visibility("default"))) void fault_reset(void) { memset(state, 0, sizeof *state); }
__attribute__((visibility("default"))) long fault_calls(void) { return state->calls; }
__attribute__((visibility("default"))) int fault_fired(void) { return state->fired; }
__attribute__((visibility("default"))) double fault_fired_at(void) { return state->fired_at; }

__attribute__((visibility("default"))) void fault_arm(const char *below, unsigned mask, int what, long call, int number,
                                                      const char *file) {
  strncpy(prefix, below, sizeof prefix - 1);
  strncpy(victim, file, sizeof victim - 1);
  kinds = mask, action = what, at = call, parameter = number, armed = 1;
}

static void change_victim(void) {
  char byte = 'x';
  int fd;
  switch (action) {
    case TRUNCATE: if (truncate(victim, 1000)) {} break;
    case REMOVE: unlink(victim); break;
    case APPEND:
      fd = open(victim, O_WRONLY | O_APPEND);
      if (write(fd, &byte, 1) < 0) {}
      close(fd);
      break;
    case REWRITE:
      fd = open(victim, O_WRONLY);
      if (lseek(fd, 5, SEEK_SET) < 0 || write(fd, &byte, 1) < 0) {}
      close(fd);
      break;
  }
}

/* Return what is to be done with this call; a signal before it and changes of other files are done here. */
static int enter(unsigned kind, int is_watched) {
  if (!armed || !is_watched || !(kinds & kind)) return COUNT;
  long number = ++state->calls;
  if (action == COUNT || number < at || (number > at && action != FAIL_FROM)) return COUNT;
  if (!state->fired) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    state->fired_at = now.tv_sec + now.tv_nsec * 1e-9;
    state->fired = 1;
  }
  if (action == SIGNAL_BEFORE) kill(getpid(), parameter);
  if (action >= TRUNCATE) {
    armed = 0;
    change_victim();
    armed = 1;
  }
  return action;
}

static void leave(int what) {
  int kept = errno;
  if (what == SIGNAL_AFTER) kill(getpid(), parameter);
  errno = kept;
}

static int below(const char *path) {
  size_t length = strlen(prefix);
  return armed && path && strncmp(path, prefix, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static int below_at(int directory, const char *path) {
  return below(path) || (path && path[0] != '/' && directory >= 0 && directory < FILES && watched[directory]);
}

static int is_open(int fd) { return fd >= 0 && fd < FILES && watched[fd]; }

#define FAILED(what) ((what) == FAIL || (what) == FAIL_FROM)
#define CALL(kind, is_watched, type, expression)               \
  do {                                                         \
    int what = enter(kind, is_watched);                        \
    if (FAILED(what)) { errno = parameter; return -1; }        \
    type result = (expression);                                \
    leave(what);                                               \
    return result;                                             \
  } while (0)

static int opened(int fd, int is_watched) {
  if (fd >= 0 && fd < FILES) watched[fd] = is_watched;
  return fd;
}

#define MODE(flags)                                            \
  mode_t mode = 0;                                             \
  if ((flags) & (O_CREAT | __O_TMPFILE)) {                     \
    va_list list;                                              \
    va_start(list, flags);                                     \
    mode = va_arg(list, mode_t);                               \
    va_end(list);                                              \
  }

int open64(const char *path, int flags, ...) {
  REAL(int, open64, const char *, int, ...);
  MODE(flags)
  int mine = below(path);
  CALL(flags & O_CREAT ? CREATE : OPEN, mine, int, opened(real_open64(path, flags, mode), mine));
}

int openat64(int directory, const char *path, int flags, ...) {
  REAL(int, openat64, int, const char *, int, ...);
  MODE(flags)
  int mine = below_at(directory, path);
  CALL(flags & O_CREAT ? CREATE : OPEN, mine, int, opened(real_openat64(directory, path, flags, mode), mine));
}

int close(int fd) {
  REAL(int, close, int);
  if (fd >= 0 && fd < FILES) watched[fd] = 0;
  return real_close(fd);
}

/* Reads and writes of one buffer. */
#define MOVE(kind, name, ...)                                                      \
  do {                                                                                   \
    int what = enter(kind, is_open(fd));                                                 \
    if (FAILED(what)) { errno = parameter; return -1; }                                  \
    if (what == SHORT && count > 1) count /= 2;                                          \
    ssize_t moved = real_##name(__VA_ARGS__);                                            \
    if (what == GARBLE && kind == READ && moved > 0) ((char *)buffer)[moved * 2 / 3] ^= 0x10; \
    leave(what);                                                                         \
    return moved;                                                                        \
  } while (0)

ssize_t read(int fd, void *buffer, size_t count) {
  REAL(ssize_t, read, int, void *, size_t);
  MOVE(READ, read, fd, buffer, count);
}

ssize_t pread64(int fd, void *buffer, size_t count, off64_t offset) {
  REAL(ssize_t, pread64, int, void *, size_t, off64_t);
  MOVE(READ, pread64, fd, buffer, count, offset);
}

ssize_t write(int fd, const void *buffer, size_t count) {
  REAL(ssize_t, write, int, const void *, size_t);
  MOVE(WRITE, write, fd, buffer, count);
}

ssize_t pwrite64(int fd, const void *buffer, size_t count, off64_t offset) {
  REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
  MOVE(WRITE, pwrite64, fd, buffer, count, offset);
}

/* Reads and writes of many buffers; a short one moves half of the first. */
#define MOVE_ALL(kind, name)                                                                       \
  do {                                                                                             \
    int what = enter(kind, is_open(fd));                                                           \
    struct iovec half = {buffers->iov_base, (buffers->iov_len + 1) / 2};                           \
    if (FAILED(what)) { errno = parameter; return -1; }                                            \
    if (what == SHORT) buffers = &half, count = 1;                                                 \
    ssize_t moved = real_##name(fd, buffers, count, offset, flags);                                \
    if (what == GARBLE && kind == READ && moved > 0) {                                             \
      size_t first = buffers->iov_len < (size_t)moved ? buffers->iov_len : (size_t)moved;          \
      ((char *)buffers->iov_base)[first * 2 / 3] ^= 0x10;                                          \
    }                                                                                              \
    leave(what);                                                                                   \
    return moved;                                                                                  \
  } while (0)

ssize_t preadv64v2(int fd, const struct iovec *buffers, int count, off64_t offset, int flags) {
  REAL(ssize_t, preadv64v2, int, const struct iovec *, int, off64_t, int);
  MOVE_ALL(READ, preadv64v2);
}

ssize_t pwritev64v2(int fd, const struct iovec *buffers, int count, off64_t offset, int flags) {
  REAL(ssize_t, pwritev64v2, int, const struct iovec *, int, off64_t, int);
  MOVE_ALL(WRITE, pwritev64v2);
}

ssize_t preadv64(int fd, const struct iovec *buffers, int count, off64_t offset) {
  return preadv64v2(fd, buffers, count, offset, 0);
}

ssize_t pwritev64(int fd, const struct iovec *buffers, int count, off64_t offset) {
  return pwritev64v2(fd, buffers, count, offset, 0);
}

int fsync(int fd) {
  REAL(int, fsync, int);
  CALL(SYNC, is_open(fd), int, real_fsync(fd));
}

int fdatasync(int fd) {
  REAL(int, fdatasync, int);
  CALL(SYNC, is_open(fd), int, real_fdatasync(fd));
}

int syncfs(int fd) {
  REAL(int, syncfs, int);
  CALL(SYNC, is_open(fd), int, real_syncfs(fd));
}

int rename(const char *from, const char *to) {
  REAL(int, rename, const char *, const char *);
  CALL(RENAME, below(to), int, real_rename(from, to));
}

int renameat(int a, const char *from, int b, const char *to) {
  REAL(int, renameat, int, const char *, int, const char *);
  CALL(RENAME, below_at(b, to), int, real_renameat(a, from, b, to));
}

int link(const char *from, const char *to) {
  REAL(int, link, const char *, const char *);
  CALL(LINK, below(to), int, real_link(from, to));
}

int linkat(int a, const char *from, int b, const char *to, int flags) {
  REAL(int, linkat, int, const char *, int, const char *, int);
  CALL(LINK, below_at(b, to), int, real_linkat(a, from, b, to, flags));
}

int unlink(const char *path) {
  REAL(int, unlink, const char *);
  CALL(UNLINK, below(path), int, real_unlink(path));
}

int unlinkat(int directory, const char *path, int flags) {
  REAL(int, unlinkat, int, const char *, int);
  CALL(UNLINK, below_at(directory, path), int, real_unlinkat(directory, path, flags));
}

int posix_fallocate64(int fd, off64_t offset, off64_t length) {
  REAL(int, posix_fallocate64, int, off64_t, off64_t);
  int what = enter(ALLOC, is_open(fd));
  if (FAILED(what)) return parameter;
  int result = real_posix_fallocate64(fd, offset, length);
  leave(what);
  return result;
}

int ftruncate64(int fd, off64_t length) {
  REAL(int, ftruncate64, int, off64_t);
  CALL(ALLOC, is_open(fd), int, real_ftruncate64(fd, length));
}

int mkdir(const char *path, mode_t mode) {
  REAL(int, mkdir, const char *, mode_t);
  CALL(DIRECTORY, below(path), int, real_mkdir(path, mode));
}

int rmdir(const char *path) {
  REAL(int, rmdir, const char *);
  CALL(DIRECTORY, below(path), int, real_rmdir(path));
}

int fchmod(int fd, mode_t mode) {
  REAL(int, fchmod, int, mode_t);
  CALL(ATTRIBUTES, is_open(fd), int, real_fchmod(fd, mode));
}

int futimens(int fd, const struct timespec times[2]) {
  REAL(int, futimens, int, const struct timespec *);
  CALL(ATTRIBUTES, is_open(fd), int, real_futimens(fd, times));
}

DIR *opendir(const char *path) {
  REAL(DIR *, opendir, const char *);
  int what = enter(LIST, below(path));
  if (FAILED(what)) { errno = parameter; return NULL; }
  DIR *result = real_opendir(path);
  leave(what);
  return result;
}
