/* Preloaded into a child process, this records everything the process does to the files of one
 * directory, in one order, and can end the process before any one of these steps.
 *
 * KEYWARD_SHIM_ROOT   the directory, without links
 * KEYWARD_SHIM_TRACE  the file to which records are appended; see trace.rs for their form
 * KEYWARD_SHIM_DIE    before which step to die, counted from 0; never if absent
 *
 * Calls go to the kernel directly, so that nothing here meets itself. A lock is held over each step
 * and its record: the order of the records is the order of the steps.
 *
 * A shared writable map and partial syncs have no record, and are recorded as errors. What else is
 * not seen here cannot hide: a change is missing when the trace is compared with the real files, and
 * a sync that is not recorded only makes the test stricter.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#if __SIZEOF_LONG__ != 8
#error "offsets are passed to the kernel in one register"
#endif

struct header {
    uint8_t kind;
    uint8_t durable;
    uint16_t path_bytes;
    uint16_t other_bytes;
    uint16_t unused;
    uint64_t offset;
    uint64_t data_bytes;
};

typedef char path_buffer[2 * PATH_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static size_t root_bytes;
static int trace = -1;
static long steps;
static long die_before = -1;

__attribute__((constructor)) static void start(void) {
    const char *directory = getenv("KEYWARD_SHIM_ROOT");
    const char *file = getenv("KEYWARD_SHIM_TRACE");
    const char *die = getenv("KEYWARD_SHIM_DIE");
    if (!directory || !file || strlen(directory) >= sizeof root)
        abort();
    strcpy(root, directory);
    root_bytes = strlen(root);
    trace = syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (trace < 0)
        abort();
    if (die)
        die_before = atol(die);
}

/* The part of a path below the root, "" for the root itself, or NULL outside. */
static const char *below(const char *path) {
    if (!root_bytes || strncmp(path, root, root_bytes) != 0)
        return NULL;
    if (path[root_bytes] == '\0')
        return "";
    return path[root_bytes] == '/' ? path + root_bytes + 1 : NULL;
}

static const char *text_of_fd(int fd, path_buffer buffer) {
    char link[40] = "/proc/self/fd/", digits[12];
    size_t end = strlen(link), count = 0;
    if (fd < 0)
        return NULL;
    do
        digits[count++] = '0' + fd % 10;
    while (fd /= 10);
    while (count)
        link[end++] = digits[--count];
    long bytes = syscall(SYS_readlinkat, AT_FDCWD, link, buffer, PATH_MAX - 1);
    if (bytes < 0)
        return NULL;
    buffer[bytes] = '\0';
    return buffer;
}

static const char *of_fd(int fd, path_buffer buffer) {
    int before = errno;
    const char *text = text_of_fd(fd, buffer);
    errno = before;
    return text ? below(text) : NULL;
}

static const char *of_path(int directory, const char *path, path_buffer buffer) {
    if (path[0] == '/')
        return below(path);
    int before = errno;
    const char *base = directory == AT_FDCWD ? getcwd(buffer, PATH_MAX) : text_of_fd(directory, buffer);
    errno = before;
    if (!base || strlen(base) + strlen(path) + 2 > sizeof(path_buffer))
        return NULL;
    strcat(buffer, "/");
    strcat(buffer, path);
    return below(buffer);
}

/* Whether the contents of a file mean nothing after a restart: LMDB's own lock file. */
static int is_lock(const char *path) {
    const char *name = strrchr(path, '/');
    return strcmp(name ? name + 1 : path, "lock.mdb") == 0;
}

/* Begins a step. */
static void begin(void) {
    pthread_mutex_lock(&lock);
    if (steps++ == die_before) {
        kill(getpid(), SIGKILL);
        for (;;)
            pause();
    }
}

static void end(void) {
    pthread_mutex_unlock(&lock);
}

static void append(const void *bytes, size_t count) {
    if (count && syscall(SYS_write, trace, bytes, count) != (long)count)
        abort();
}

static void record(char kind, int durable, const char *path, const char *other, uint64_t offset,
                   const void *data, uint64_t data_bytes) {
    int before = errno;
    struct header header = {kind, durable, strlen(path), strlen(other), 0, offset, data_bytes};
    append(&header, sizeof header);
    append(path, header.path_bytes);
    append(other, header.other_bytes);
    if (data)
        append(data, data_bytes);
    errno = before;
}

static void record_error(const char *call, const char *path) {
    pthread_mutex_lock(&lock);
    record('E', 0, path, call, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
}

static int flags_of(int fd) {
    int before = errno;
    int flags = fcntl(fd, F_GETFL);
    errno = before;
    return flags < 0 ? 0 : flags;
}

/* Where the next write to a file goes. */
static uint64_t position(int fd) {
    return syscall(SYS_lseek, fd, 0, flags_of(fd) & O_APPEND ? SEEK_END : SEEK_CUR);
}

static void record_write(int fd, const char *path, uint64_t offset, const void *data, long done) {
    if (done > 0)
        record('W', (flags_of(fd) & O_DSYNC) != 0, path, "", offset, data, done);
}

static void record_vector(int fd, const char *path, uint64_t offset, const struct iovec *parts,
                          long done) {
    for (; done > 0; parts++) {
        long some = done < (long)parts->iov_len ? done : (long)parts->iov_len;
        record_write(fd, path, offset, parts->iov_base, some);
        offset += some;
        done -= some;
    }
}

/* Opening and creating */

static int open_at(int directory, const char *path, int flags, mode_t mode) {
    path_buffer buffer;
    const char *traced = flags & (O_CREAT | O_TRUNC) ? of_path(directory, path, buffer) : NULL;
    if (!traced)
        return syscall(SYS_openat, directory, path, flags, mode);
    begin();
    int before = errno;
    int existed = syscall(SYS_faccessat, directory, path, F_OK) == 0;
    errno = before;
    int fd = syscall(SYS_openat, directory, path, flags, mode);
    if (fd >= 0 && !existed)
        record('C', 0, traced, "", 0, NULL, 0);
    else if (fd >= 0 && flags & O_TRUNC)
        record('T', 0, traced, "", 0, NULL, 0);
    end();
    return fd;
}

#define MODE(flags, mode)                        \
    mode_t mode = 0;                             \
    if ((flags) & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) { \
        va_list rest;                            \
        va_start(rest, flags);                   \
        mode = va_arg(rest, mode_t);             \
        va_end(rest);                            \
    }

int open(const char *path, int flags, ...) {
    MODE(flags, mode)
    return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));

int openat(int directory, const char *path, int flags, ...) {
    MODE(flags, mode)
    return open_at(directory, path, flags, mode);
}

int openat64(int directory, const char *path, int flags, ...)
    __attribute__((alias("openat")));

int creat(const char *path, mode_t mode) {
    return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

int creat64(const char *path, mode_t mode) __attribute__((alias("creat")));

/* Writing */

ssize_t write(int fd, const void *data, size_t bytes) {
    path_buffer buffer;
    const char *path = of_fd(fd, buffer);
    if (!path)
        return syscall(SYS_write, fd, data, bytes);
    begin();
    uint64_t offset = position(fd);
    ssize_t done = syscall(SYS_write, fd, data, bytes);
    record_write(fd, path, offset, data, done);
    end();
    return done;
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t offset) {
    path_buffer buffer;
    const char *path = of_fd(fd, buffer);
    if (!path)
        return syscall(SYS_pwrite64, fd, data, bytes, offset);
    begin();
    ssize_t done = syscall(SYS_pwrite64, fd, data, bytes, offset);
    record_write(fd, path, offset, data, done);
    end();
    return done;
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
    __attribute__((alias("pwrite64")));

ssize_t writev(int fd, const struct iovec *parts, int count) {
    path_buffer buffer;
    const char *path = of_fd(fd, buffer);
    if (!path)
        return syscall(SYS_writev, fd, parts, count);
    begin();
    uint64_t offset = position(fd);
    ssize_t done = syscall(SYS_writev, fd, parts, count);
    record_vector(fd, path, offset, parts, done);
    end();
    return done;
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) {
    path_buffer buffer;
    const char *path = of_fd(fd, buffer);
    if (!path)
        return syscall(SYS_pwritev, fd, parts, count, offset, 0L);
    begin();
    ssize_t done = syscall(SYS_pwritev, fd, parts, count, offset, 0L);
    record_vector(fd, path, offset, parts, done);
    end();
    return done;
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
    __attribute__((alias("pwritev64")));

/* Records what the kernel copied between two files. */
static void record_copy(int to, const char *path, uint64_t offset, int from, uint64_t source,
                        long done) {
    char data[1 << 16];
    while (done > 0) {
        long some = done < (long)sizeof data ? done : (long)sizeof data;
        if (syscall(SYS_pread64, from, data, some, source) != some)
            abort();
        record_write(to, path, offset, data, some);
        offset += some;
        source += some;
        done -= some;
    }
}

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t bytes,
                        unsigned flags) {
    path_buffer buffer;
    const char *path = of_fd(to, buffer);
    if (!path)
        return syscall(SYS_copy_file_range, from, from_at, to, to_at, bytes, flags);
    begin();
    uint64_t source = from_at ? *from_at : syscall(SYS_lseek, from, 0, SEEK_CUR);
    uint64_t offset = to_at ? (uint64_t)*to_at : position(to);
    ssize_t done = syscall(SYS_copy_file_range, from, from_at, to, to_at, bytes, flags);
    record_copy(to, path, offset, from, source, done);
    end();
    return done;
}

ssize_t sendfile64(int to, int from, off64_t *from_at, size_t bytes) {
    path_buffer buffer;
    const char *path = of_fd(to, buffer);
    if (!path)
        return syscall(SYS_sendfile, to, from, from_at, bytes);
    begin();
    uint64_t source = from_at ? *from_at : syscall(SYS_lseek, from, 0, SEEK_CUR);
    uint64_t offset = position(to);
    ssize_t done = syscall(SYS_sendfile, to, from, from_at, bytes);
    record_copy(to, path, offset, from, source, done);
    end();
    return done;
}

ssize_t sendfile(int to, int from, off_t *from_at, size_t bytes)
    __attribute__((alias("sendfile64")));

int ftruncate64(int fd, off64_t bytes) {
    path_buffer buffer;
    const char *path = of_fd(fd, buffer);
    if (!path)
        return syscall(SYS_ftruncate, fd, bytes);
    begin();
    int failed = syscall(SYS_ftruncate, fd, bytes);
    if (!failed)
        record('T', 0, path, "", bytes, NULL, 0);
    end();
    return failed;
}

int ftruncate(int fd, off_t bytes) __attribute__((alias("ftruncate64")));

/* Syncing */

static int sync_fd(long call, int fd) {
    path_buffer buffer;
    const char *path = of_fd(fd, buffer);
    if (!path)
        return syscall(call, fd);
    begin();
    int failed = syscall(call, fd);
    if (!failed)
        record('S', 0, path, "", 0, NULL, 0);
    end();
    return failed;
}

int fsync(int fd) {
    return sync_fd(SYS_fsync, fd);
}

int fdatasync(int fd) {
    return sync_fd(SYS_fdatasync, fd);
}

/* Names */

int mkdirat(int directory, const char *path, mode_t mode) {
    path_buffer buffer;
    const char *traced = of_path(directory, path, buffer);
    if (!traced)
        return syscall(SYS_mkdirat, directory, path, mode);
    begin();
    int failed = syscall(SYS_mkdirat, directory, path, mode);
    if (!failed)
        record('M', 0, traced, "", 0, NULL, 0);
    end();
    return failed;
}

int mkdir(const char *path, mode_t mode) {
    return mkdirat(AT_FDCWD, path, mode);
}

int unlinkat(int directory, const char *path, int flags) {
    path_buffer buffer;
    const char *traced = of_path(directory, path, buffer);
    if (!traced)
        return syscall(SYS_unlinkat, directory, path, flags);
    begin();
    int failed = syscall(SYS_unlinkat, directory, path, flags);
    if (!failed)
        record('U', 0, traced, "", 0, NULL, 0);
    end();
    return failed;
}

int unlink(const char *path) {
    return unlinkat(AT_FDCWD, path, 0);
}

int rmdir(const char *path) {
    return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    path_buffer old_buffer, new_buffer;
    const char *source = of_path(from, old, old_buffer);
    const char *target = of_path(to, new, new_buffer);
    if (!source && !target)
        return syscall(SYS_renameat2, from, old, to, new, flags);
    begin();
    int failed = syscall(SYS_renameat2, from, old, to, new, flags);
    if (!failed && source && target && !flags)
        record('R', 0, source, target, 0, NULL, 0);
    else if (!failed)
        record('E', 0, source ? source : target, "rename", 0, NULL, 0);
    end();
    return failed;
}

int renameat(int from, const char *old, int to, const char *new) {
    return renameat2(from, old, to, new, 0);
}

int rename(const char *old, const char *new) {
    return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0);
}

/* What the records have no form for */

void *mmap64(void *address, size_t bytes, int protection, int flags, int fd, off64_t offset) {
    path_buffer buffer;
    int writable = protection & PROT_WRITE && (flags & MAP_TYPE) != MAP_PRIVATE;
    const char *path = writable && !(flags & MAP_ANONYMOUS) ? of_fd(fd, buffer) : NULL;
    if (path && !is_lock(path))
        record_error("mmap", path);
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
}

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
    __attribute__((alias("mmap64")));

int msync(void *address, size_t bytes, int flags) {
    record_error("msync", "");
    return syscall(SYS_msync, address, bytes, flags);
}

int sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned flags) {
    path_buffer buffer;
    const char *path = of_fd(fd, buffer);
    if (path)
        record_error("sync_file_range", path);
    return syscall(SYS_sync_file_range, fd, offset, bytes, flags);
}
