// Loaded into a program by LD_PRELOAD: its clock is ahead by as many seconds as a file says, which all processes of the program share.
// The clock jumps when the file is written. The clock that only counts (CLOCK_MONOTONIC) stays as it is, as when a date is set.
//
// The file is in the folder TEST_CLOCKS, and is named TEST_CLOCK, or as the program is. Without such a file the clock is right.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t right = 0;
static const volatile int64_t *ahead_seconds = &right;

__attribute__((constructor)) static void find_clock(void) {
  const char *folder = getenv("TEST_CLOCKS");
  const char *name = getenv("TEST_CLOCK");
  if (folder == NULL) return;
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", folder, name != NULL ? name : program_invocation_short_name);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void *page = mmap(NULL, sizeof right, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (page != MAP_FAILED) ahead_seconds = page;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
  int result = (int)syscall(SYS_clock_gettime, clock, at);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += *ahead_seconds;
  return result;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at != NULL) *at = now.tv_sec;
  return now.tv_sec;
}
