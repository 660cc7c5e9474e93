/// What the kernel says about links and addresses (rtnetlink(7)).
#ifndef TIEREDCACHE_ROUTEEVENTS_H
#define TIEREDCACHE_ROUTEEVENTS_H

#if defined(__linux__)
#define TC_ROUTE_ADDRESS 1
#define TC_ROUTE_ADDRESS_GONE 2
#define TC_ROUTE_LINK 3
#define TC_ROUTE_LINK_GONE 4
/// The end of an answer to tc_route_ask.
#define TC_ROUTE_DONE 5
/// Messages were lost: everything has to be asked for again.
#define TC_ROUTE_OVERRUN 6

typedef struct {
  int kind;
  int link;
  /// Whether a link is up and running; whether an address can be used beyond this machine.
  int usable;
  /// The address as text.
  char address[46];
} tc_route_event;

/// A socket that hears of all changes from now on, or a negative errno.
int tc_route_open(void);
/// Asks for all links (what = 0) or all addresses (what = 1). 0 or a negative errno.
int tc_route_ask(int fd, int what);
/// Waits at most `milliseconds` for one message and reads what it says. The number of events, 0 if
/// there were none, or a negative errno.
int tc_route_read(int fd, int milliseconds, tc_route_event *events, int capacity);
#endif

#endif
