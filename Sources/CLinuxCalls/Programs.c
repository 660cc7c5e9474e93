#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include "Programs.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if !defined(MSG_NOSIGNAL)
#define MSG_NOSIGNAL 0 // there the program ignores SIGPIPE
#endif

extern char **environ;

static sigset_t inherited_mask;
static bool inherited_ignores_pipe;
static struct rlimit inherited_files;

// The first that are open may be the caller's; numbers beyond are never inherited from a shell.
enum { remembered_descriptors = 1024 };
static bool inherited[remembered_descriptors];

static void for_each_descriptor(void (*act)(int)) {
  DIR *directory = opendir("/proc/self/fd");
  if (directory == NULL) {
    for (int descriptor = 0; descriptor < remembered_descriptors; descriptor++)
      act(descriptor);
    return;
  }
  struct dirent *item;
  while ((item = readdir(directory)) != NULL) {
    if (item->d_name[0] < '0' || item->d_name[0] > '9')
      continue;
    int descriptor = atoi(item->d_name);
    if (descriptor != dirfd(directory))
      act(descriptor);
  }
  (void)closedir(directory);
}

static void remember(int descriptor) {
  if (descriptor < remembered_descriptors)
    inherited[descriptor] = fcntl(descriptor, F_GETFD) >= 0;
}

void tc_remember_inherited(void) {
  (void)pthread_sigmask(SIG_BLOCK, NULL, &inherited_mask);
  struct sigaction action;
  inherited_ignores_pipe = sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
  if (getrlimit(RLIMIT_NOFILE, &inherited_files) != 0)
    inherited_files.rlim_cur = 0;
  for_each_descriptor(remember);
}

static void keep_own_from_programs(int descriptor) {
  if (descriptor > 2 && (descriptor >= remembered_descriptors || !inherited[descriptor]))
    (void)fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

// MARK: Signals

static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
enum { passed_on_count = sizeof passed_on / sizeof *passed_on };

// 0 before there is a program, -1 after it.
static _Atomic int program;
// Those that came before.
static _Atomic unsigned early;

static void pass_on(int number, siginfo_t *info, void *context) {
  (void)context;
  // The terminal's are sent by the kernel, and to the program, too.
  if (info != NULL && info->si_code > 0)
    return;
  int process = atomic_load(&program);
  if (process > 0)
    (void)kill(process, number);
  else if (process == 0)
    atomic_fetch_or(&early, 1u << number);
}

static void watch_signals(sigset_t *defaults) {
  struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};
  (void)sigemptyset(&action.sa_mask);
  for (int index = 0; index < passed_on_count; index++) {
    struct sigaction before;
    int number = passed_on[index];
    if (sigaction(number, NULL, &before) != 0 || before.sa_handler == SIG_IGN)
      continue;
    (void)sigaction(number, &action, NULL);
    (void)sigaddset(defaults, number);
  }
}

int tc_spawn_program(char *const arguments[]) {
  sigset_t defaults;
  (void)sigemptyset(&defaults);
  if (!inherited_ignores_pipe)
    (void)sigaddset(&defaults, SIGPIPE);
  watch_signals(&defaults);
  for_each_descriptor(keep_own_from_programs);

  posix_spawnattr_t attributes;
  int result = posix_spawnattr_init(&attributes);
  if (result != 0)
    return -result;
  (void)posix_spawnattr_setsigmask(&attributes, &inherited_mask);
  (void)posix_spawnattr_setsigdefault(&attributes, &defaults);
  (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  // The limit of this process would be the program's: some cannot use descriptors beyond 1,024.
  struct rlimit own;
  bool has_limit = inherited_files.rlim_cur > 0 && getrlimit(RLIMIT_NOFILE, &own) == 0;
  if (has_limit)
    (void)setrlimit(RLIMIT_NOFILE, &inherited_files);
  pid_t process = 0;
  result = posix_spawnp(&process, arguments[0], NULL, &attributes, arguments, environ);
  if (has_limit)
    (void)setrlimit(RLIMIT_NOFILE, &own);
  (void)posix_spawnattr_destroy(&attributes);
  if (result != 0)
    return -result;
  atomic_store(&program, process);
  unsigned numbers = atomic_exchange(&early, 0);
  for (int index = 0; index < passed_on_count; index++)
    if (numbers & 1u << passed_on[index])
      (void)kill(process, passed_on[index]);
  return process;
}

int tc_await_program(int process) {
  // The number stays the program's until it is taken below, so that no other process gets its signals.
  siginfo_t info;
  while (waitid(P_PID, (id_t)process, &info, WEXITED | WNOWAIT) != 0)
    if (errno != EINTR)
      return -errno;
  atomic_store(&program, -1);
  int status;
  while (waitpid(process, &status, 0) < 0)
    if (errno != EINTR)
      return -errno;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// MARK: The background

void tc_leave_parent(void) {
  // Where there can be no other process, this one serves as well, as a child.
  if (fork() > 0)
    _exit(0);
}

int tc_spawn_detached(const char *path, char *const arguments[], int output, int lock) {
#if defined(POSIX_SPAWN_SETSID)
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  int result = posix_spawn_file_actions_init(&actions);
  if (result != 0)
    return -result;
  result = posix_spawnattr_init(&attributes);
  if (result != 0) {
    (void)posix_spawn_file_actions_destroy(&actions);
    return -result;
  }
  sigset_t none, defaults;
  (void)sigemptyset(&none);
  (void)sigfillset(&defaults);
  (void)posix_spawnattr_setsigmask(&attributes, &none);
  (void)posix_spawnattr_setsigdefault(&attributes, &defaults);
  (void)posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  // `dup2` leaves a descriptor as it is where both numbers are one, closed at exec then; so that cannot be.
  int high_output = fcntl(output, F_DUPFD_CLOEXEC, 10);
  int high_lock = lock < 0 ? -1 : fcntl(lock, F_DUPFD_CLOEXEC, 10);
  result = high_output < 0 || (lock >= 0 && high_lock < 0) ? EMFILE : 0;
  if (result == 0)
    result = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (result == 0)
    result = posix_spawn_file_actions_adddup2(&actions, high_output, 1);
  if (result == 0)
    result = posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  if (result == 0 && high_lock >= 0)
    result = posix_spawn_file_actions_adddup2(&actions, high_lock, 3);
#if defined(__GLIBC__)
  // In the child: the descriptors of this process, opened by whatever library, stay as they are.
  if (result == 0)
    result = posix_spawn_file_actions_addclosefrom_np(&actions, high_lock < 0 ? 3 : 4);
#endif
  pid_t process = 0;
  if (result == 0)
    result = posix_spawn(&process, path, &actions, &attributes, arguments, environ);
  if (high_output >= 0)
    (void)close(high_output);
  if (high_lock >= 0)
    (void)close(high_lock);
  (void)posix_spawn_file_actions_destroy(&actions);
  (void)posix_spawnattr_destroy(&attributes);
  return result != 0 ? -result : process;
#else
  (void)path, (void)arguments, (void)output, (void)lock;
  return -ENOTSUP;
#endif
}

// MARK: Asking

static int64_t milliseconds_now(void) {
  struct timespec time;
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

// 0, or a negative errno.
static int await(int socket, short events, int64_t end) {
  for (;;) {
    int64_t left = end - milliseconds_now();
    struct pollfd wanted = {.fd = socket, .events = events};
    int ready = left > 0 ? poll(&wanted, 1, (int)left) : 0;
    if (ready > 0)
      return 0;
    if (ready == 0)
      return -ETIMEDOUT;
    if (errno != EINTR)
      return -errno;
  }
}

static int64_t exchange(int socket, const char *request, size_t length, char *answer, size_t count, int64_t end) {
  int result = await(socket, POLLOUT, end);
  // Shorter than the emptiest buffer of a socket; SIGPIPE is not meant for this.
  if (result == 0 && send(socket, request, length, MSG_NOSIGNAL) != (ssize_t)length)
    result = -EPIPE;
  size_t have = 0;
  while (result == 0 && have < count) {
    result = await(socket, POLLIN, end);
    if (result != 0)
      break;
    ssize_t got = recv(socket, answer + have, count - have, 0);
    if (got == 0)
      break;
    if (got > 0)
      have += (size_t)got;
    else if (errno != EINTR && errno != EAGAIN)
      result = -errno;
  }
  return result < 0 ? result : (int64_t)have;
}

int64_t tc_ask_loopback(int port, const void *request, size_t length, void *answer, size_t count, int milliseconds) {
  int64_t end = milliseconds_now() + milliseconds;
  int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  if (descriptor < 0)
    return -errno;
  (void)fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  (void)fcntl(descriptor, F_SETFL, O_NONBLOCK);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int64_t result = connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0 || errno == EINPROGRESS
                       ? exchange(descriptor, request, length, answer, count, end)
                       : -errno;
  (void)close(descriptor);
  return result;
}
