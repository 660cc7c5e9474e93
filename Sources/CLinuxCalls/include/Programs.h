/// Programs that are run beside this one, or in the background.
#ifndef TIEREDCACHE_PROGRAMS_H
#define TIEREDCACHE_PROGRAMS_H

#include <stddef.h>
#include <stdint.h>

/// Remembers what this process got from its parent and a program must get from it: the signal mask,
/// whether SIGPIPE is ignored, the limit of open files, which descriptors there are. Call it in `main`
/// before anything else.
void tc_remember_inherited(void);

/// posix_spawnp(3): starts a program with what was remembered, and from now on passes on to it signals
/// that another process sends to this one: SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2. Those of
/// the terminal it gets itself, as it stays in the process group. Signals that are ignored stay so.
/// Returns its number or a negative errno. Once in a process.
int tc_spawn_program(char *const arguments[]);

/// waitpid(2): its exit code, or 128 and the number of the signal that ended it; or a negative errno.
/// Passes no signal on any more then.
int tc_await_program(int process);

/// posix_spawn(3): starts a program in a session and a process group of its own, without any descriptor
/// but these: /dev/null for 0 and 2, `output` for 1, `lock` for 3 (with another library than glibc also
/// those that are not closed by execve(2)). Returns its number, which is that of the group, or a negative
/// errno. The descriptors of this process stay as they are.
int tc_spawn_detached(const char *path, char *const arguments[], int output, int lock);

/// fork(2), and ends the parent: this process is a child of nobody then, and ends without leaving a dead
/// one. Call it before there is a second thread.
void tc_leave_parent(void);

/// Sends a request to 127.0.0.1 and reads the answer until it ends, `count` is full, or this many
/// milliseconds are over. Returns its length or a negative errno.
int64_t tc_ask_loopback(int port, const void *request, size_t length, void *answer, size_t count, int milliseconds);

#endif
