/// What a terminal says about itself.
#ifndef TIEREDCACHE_TERMINAL_H
#define TIEREDCACHE_TERMINAL_H

#include <sys/ioctl.h>

/// ioctl(TIOCGWINSZ): the number of columns, or 0 if `fd` is not a terminal.
static inline int tc_terminal_width(int fd) {
  struct winsize size;
  return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

#endif
