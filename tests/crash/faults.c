/* Preloaded into a server under test. The environment names files that say what goes wrong while it runs:
   SYNC_FAILS_WHILE   while this file is there, syncing the database fails with EIO
   SYNC_SECONDS       holds how long syncing the database takes besides, in whole seconds
   SYNCED_FOLDER      gets a copy of each database file as of its last sync: what a power cut would leave
   CLOCK_OFFSET       holds the seconds that the wall clock is off */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static int sync_with(long call, int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    const char *name = strrchr(path, '/');
    const char *flag = getenv("SYNC_FAILS_WHILE"), *folder = getenv("SYNCED_FOLDER");
    int ours = name && strncmp(name + 1, "cardbeat.db", 11) == 0;
    if (ours && flag && access(flag, F_OK) == 0) {
        errno = EIO;
        return -1;
    }
    if (ours)
        sleep(number_in(getenv("SYNC_SECONDS")));
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
