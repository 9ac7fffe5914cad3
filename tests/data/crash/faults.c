/* Preloaded into a server under test. The environment names files that say what goes wrong while it runs:
   SYNC_FAILS_WHILE   while this file is there, syncing the database fails with EIO
   SYNCED_FOLDER      gets a copy of each database file as of its last sync: what a power cut would leave
   CLOCK_OFFSET       holds the seconds that the wall clock is off
   DISK_FAULTS        while this file is there: "SEED EVERY FOLDER": one of so many calls that change files below the
                      folder fails, chosen by the seed: EIO, ENOSPC, EINTR, half a write, or success 0.2 s late
   QUOTA              once this file is there: "FOLDER": files below the folder grow by no more than others shrink */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static void keep(int fd, const char *folder, const char *name)
{
    char target[4096], partial[4200], block[65536];
    snprintf(target, sizeof target, "%s/%s", folder, name);
    snprintf(partial, sizeof partial, "%s.partial", target);
    int copy = open(partial, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    off_t at = 0;
    ssize_t length;
    while ((length = pread(fd, block, sizeof block, at)) > 0) {
        if (write(copy, block, length) != length)
            abort();
        at += length;
    }
    close(copy);
    rename(partial, target);
}

static long number_in(const char *path)
{
    char text[32] = "";
    int fd = path ? open(path, O_RDONLY) : -1;
    if (fd >= 0) {
        if (read(fd, text, sizeof text - 1) < 0)
            abort();
        close(fd);
    }
    return atol(text);
}

/* What stands in the file that the environment names, as text; its length, 0 if there is nothing. */
static ssize_t told(const char *name, char *text, size_t size)
{
    const char *flag = getenv(name);
    int fd = flag ? syscall(SYS_openat, AT_FDCWD, flag, O_RDONLY) : -1;
    if (fd < 0)
        return 0;
    ssize_t length = syscall(SYS_read, fd, text, size - 1);
    syscall(SYS_close, fd);
    text[length > 0 ? length : 0] = 0;
    return length > 0 ? length : 0;
}

#define PATH_BYTES 4096

static void path_of(int fd, char *path)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_BYTES - 1);
    path[length > 0 ? length : 0] = 0;
}

/* The fault of this call on a file: an errno, HALF of a write, or 0 for none. */
#define HALF -1
static atomic_ulong calls;

static int fault(const char *path, int may_be_short)
{
    char text[4200] = "", folder[4096];
    unsigned long seed, every;
    if (!told("DISK_FAULTS", text, sizeof text) || sscanf(text, "%lu %lu %4095s", &seed, &every, folder) != 3)
        return 0;
    if (strncmp(path, folder, strlen(folder)) != 0)
        return 0;
    unsigned long number = (seed << 32) + atomic_fetch_add(&calls, 1) + 0x9e3779b97f4a7c15;
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
    number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
    number ^= number >> 31;
    if (number % every)
        return 0;
    switch (number / every % 5) {
    case 0: return EIO;
    case 1: return ENOSPC;
    case 2: return EINTR;
    case 3: return may_be_short ? HALF : EIO;
    default: usleep(200000); return 0;
    }
}

static int fault_of(int fd, int may_be_short)
{
    char path[PATH_BYTES];
    if (!getenv("DISK_FAULTS"))
        return 0;
    path_of(fd, path);
    return fault(path, may_be_short);
}

static int fails(int found)
{
    if (found > 0)
        errno = found;
    return found > 0;
}

static atomic_long quota_left;

/* Takes from the quota, or gives back, what the file changes by: whether there is so much. */
static int is_over_quota(int fd, off_t size)
{
    char folder[PATH_BYTES], path[PATH_BYTES];
    struct stat before;
    ssize_t length = told("QUOTA", folder, sizeof folder);
    if (!length)
        return 0;
    path_of(fd, path);
    if (strncmp(path, folder, length) != 0 || fstat(fd, &before) != 0 || !S_ISREG(before.st_mode))
        return 0;
    long growth = size - before.st_size;
    if (atomic_fetch_sub(&quota_left, growth) >= growth)
        return 0;
    atomic_fetch_add(&quota_left, growth);
    errno = EDQUOT;
    return 1;
}

static off_t end_of(int fd, off_t at, size_t size)
{
    struct stat now;
    off_t end = at + size;
    return fstat(fd, &now) == 0 && now.st_size > end ? now.st_size : end;
}

#define WRITE(name, args, at, rest)                                                                                    \
    ssize_t name args                                                                                                  \
    {                                                                                                                  \
        if (is_over_quota(fd, end_of(fd, at, size)))                                                                   \
            return -1;                                                                                                 \
        int found = fault_of(fd, 1);                                                                                   \
        if (fails(found))                                                                                              \
            return -1;                                                                                                 \
        if (found == HALF && size > 1)                                                                                 \
            size /= 2;                                                                                                 \
        return syscall rest;                                                                                           \
    }

WRITE(write, (int fd, const void *from, size_t size), lseek(fd, 0, SEEK_CUR), (SYS_write, fd, from, size))
WRITE(pwrite64, (int fd, const void *from, size_t size, off_t at), at, (SYS_pwrite64, fd, from, size, at))
WRITE(pwrite, (int fd, const void *from, size_t size, off_t at), at, (SYS_pwrite64, fd, from, size, at))

int ftruncate64(int fd, off_t size)
{
    return is_over_quota(fd, size) || fails(fault_of(fd, 0)) ? -1 : syscall(SYS_ftruncate, fd, size);
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int open64(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    int mode = va_arg(rest, int);
    va_end(rest);
    return fails(fault(path, 0)) ? -1 : syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    int mode = va_arg(rest, int);
    va_end(rest);
    return open64(path, flags, mode);
}

int rename(const char *from, const char *to)
{
    return fails(fault(to, 0)) ? -1 : syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static int sync_with(long call, int fd)
{
    if (fails(fault_of(fd, 0)))
        return -1;
    char path[PATH_BYTES];
    path_of(fd, path);
    const char *name = strrchr(path, '/');
    const char *flag = getenv("SYNC_FAILS_WHILE"), *folder = getenv("SYNCED_FOLDER");
    int ours = name && strncmp(name + 1, "cardbeat.db", 11) == 0;
    if (ours && flag && access(flag, F_OK) == 0) {
        errno = EIO;
        return -1;
    }
    int result = syscall(call, fd);
    if (ours && folder && result == 0)
        keep(fd, folder, name + 1);
    return result;
}

int fsync(int fd) { return sync_with(SYS_fsync, fd); }

int fdatasync(int fd) { return sync_with(SYS_fdatasync, fd); }

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && clock == CLOCK_REALTIME)
        now->tv_sec += number_in(getenv("CLOCK_OFFSET"));
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    int result = syscall(SYS_gettimeofday, now, zone);
    if (result == 0)
        now->tv_sec += number_in(getenv("CLOCK_OFFSET"));
    return result;
}

time_t time(time_t *where)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (where)
        *where = now.tv_sec;
    return now.tv_sec;
}
