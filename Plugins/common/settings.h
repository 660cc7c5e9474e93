/* What people set for the plug-ins, in this order, later ones going first:
 *
 *   /etc/tieredcache/plugins.conf, $XDG_CONFIG_HOME/tieredcache/plugins.conf, a file of the player's
 *   the environment: TIEREDCACHE_DIRECTORY, TIEREDCACHE_EXCLUDE, ...: the names below in capitals
 *   options of the player
 *
 *   enabled=no             the player behaves as without the plug-in
 *   directory=PATH         of the cache; ~/ is the home
 *   memory_limit=SIZE      64MiB, 512MB, 1000000
 *   disk_limit=SIZE
 *   exclude=HOST ...       left alone, with all hosts below; HOST:PORT at that port alone; * is all
 *   header=HOST NAME: VALUE    sent to the host and those below it
 *   key=HOST PARAMETER ... parameters of its URLs that do not tell which film it is (signatures)
 *   log=LEVEL              none, error, warning, info, debug
 *
 * exclude, header and key are rules of the library (tiered_host_rules): they add to those before; empty, they forget
 * them. */
#ifndef PLUGIN_SETTINGS_H
#define PLUGIN_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <tieredcache.h>

#include "text.h"

typedef struct settings {
    bool enabled;
    char *directory; /* NULL: the library's own */
    int64_t memory_limit, disk_limit; /* 0: the library's own */
    int log_level;
    text_list rules;  /* lines as above, for tiered_host_rules */
    text_list places; /* where each of them comes from, for people */
} settings;

/* Tells of a setting that cannot be used, by its place and name: what it says may be a secret. */
typedef void (*settings_complaint)(void *context, const char *text);

/* Reads the files and the environment. */
void settings_begin(settings *given, settings_complaint complain, void *context);
/* The same with a file of the player's; NULL: none. */
void settings_begin_with(settings *given, const char *own, settings_complaint complain, void *context);
void settings_end(settings *given);
/* Reads lines NAME=VALUE; # begins a comment. A file that is not there is none. */
void settings_read(settings *given, const char *path, settings_complaint complain, void *context);
/* Gives false where there is no such name, or the value makes no sense. - and _ are the same. */
bool settings_set(settings *given, const char *name, const char *value);

/* Opens the cache as set, with the rules. */
int settings_open(settings *given, tiered_log_fn log, void *log_context, settings_complaint complain, void *context,
                  tiered_cache **cache);
/* Gives the rules to a cache; tells of those that the library refuses, and leaves them out. */
void settings_rule(settings *given, tiered_cache *cache, settings_complaint complain, void *context);
/* Whether a URL is to go through the cache: no rule leaves its host alone, nor is it of the cache's own proxy. */
bool settings_take(const settings *given, tiered_cache *cache, const char *url);
/* A new string: the URL that plays url through the proxy in this process; NULL where there is none. */
char *settings_proxied(tiered_cache *cache, const char *url);

#endif
