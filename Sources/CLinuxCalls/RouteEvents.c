#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#if defined(__linux__)
#include "include/RouteEvents.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int tc_route_open(void) {
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
  if (fd < 0) return -errno;
  struct sockaddr_nl address;
  memset(&address, 0, sizeof(address));
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
    int error = errno;
    close(fd);
    return -error;
  }
  return fd;
}

int tc_route_ask(int fd, int what) {
  struct {
    struct nlmsghdr head;
    struct rtgenmsg body;
  } request;
  memset(&request, 0, sizeof(request));
  request.head.nlmsg_len = NLMSG_LENGTH(sizeof(request.body));
  request.head.nlmsg_type = what == 0 ? RTM_GETLINK : RTM_GETADDR;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.body.rtgen_family = AF_UNSPEC;
  return send(fd, &request, request.head.nlmsg_len, 0) < 0 ? -errno : 0;
}

static int add_link(const struct nlmsghdr *head, tc_route_event *event) {
  if (head->nlmsg_len < NLMSG_LENGTH(sizeof(struct ifinfomsg))) return 0;
  const struct ifinfomsg *link = NLMSG_DATA(head);
  event->kind = head->nlmsg_type == RTM_NEWLINK ? TC_ROUTE_LINK : TC_ROUTE_LINK_GONE;
  event->link = link->ifi_index;
  const unsigned wanted = IFF_UP | IFF_RUNNING;
  event->usable = (link->ifi_flags & wanted) == wanted && !(link->ifi_flags & IFF_LOOPBACK);
  return 1;
}

static int add_address(const struct nlmsghdr *head, tc_route_event *event) {
  if (head->nlmsg_len < NLMSG_LENGTH(sizeof(struct ifaddrmsg))) return 0;
  struct ifaddrmsg *message = NLMSG_DATA(head);
  int length = (int)IFA_PAYLOAD(head);
  const void *address = NULL;
  for (struct rtattr *part = IFA_RTA(message); RTA_OK(part, length);
       part = RTA_NEXT(part, length)) {
    size_t needed = message->ifa_family == AF_INET ? 4 : 16;
    if (RTA_PAYLOAD(part) < needed) continue;
    // Of a point-to-point link IFA_ADDRESS is the other end, and IFA_LOCAL is ours.
    if (part->rta_type == IFA_LOCAL) address = RTA_DATA(part);
    if (part->rta_type == IFA_ADDRESS && address == NULL) address = RTA_DATA(part);
  }
  if (address == NULL) return 0;
  if (inet_ntop(message->ifa_family, address, event->address, sizeof(event->address)) == NULL) {
    return 0;
  }
  event->kind = head->nlmsg_type == RTM_NEWADDR ? TC_ROUTE_ADDRESS : TC_ROUTE_ADDRESS_GONE;
  event->link = (int)message->ifa_index;
  event->usable = message->ifa_scope < RT_SCOPE_LINK && !(message->ifa_flags & IFA_F_TENTATIVE);
  return 1;
}

int tc_route_read(int fd, int milliseconds, tc_route_event *events, int capacity) {
  struct pollfd ready = {.fd = fd, .events = POLLIN};
  int count = poll(&ready, 1, milliseconds);
  if (count <= 0) return count == 0 || errno == EINTR ? 0 : -errno;
  char buffer[32768] __attribute__((aligned(NLMSG_ALIGNTO)));
  ssize_t length = recv(fd, buffer, sizeof(buffer), 0);
  if (length < 0) {
    if (errno == EAGAIN || errno == EINTR) return 0;
    if (errno != ENOBUFS || capacity < 1) return -errno;
    memset(&events[0], 0, sizeof(events[0]));
    events[0].kind = TC_ROUTE_OVERRUN;
    return 1;
  }
  count = 0;
  for (struct nlmsghdr *head = (struct nlmsghdr *)buffer;
       NLMSG_OK(head, (size_t)length) && count < capacity; head = NLMSG_NEXT(head, length)) {
    tc_route_event *event = &events[count];
    memset(event, 0, sizeof(*event));
    switch (head->nlmsg_type) {
      case RTM_NEWLINK:
      case RTM_DELLINK: count += add_link(head, event); break;
      case RTM_NEWADDR:
      case RTM_DELADDR: count += add_address(head, event); break;
      case NLMSG_DONE:
      case NLMSG_ERROR:
        event->kind = TC_ROUTE_DONE;
        count += 1;
        break;
      default: break;
    }
  }
  return count;
}
#endif
