/* The plug-in for mpv: what its files share. One thread runs it, the one that calls mpv_open_cplugin; the callbacks of
 * streams run on threads of mpv, and may call none of mpv's functions. */
#ifndef PLUGIN_MPV_H
#define PLUGIN_MPV_H

#include <mpv/client.h>
#include <mpv/stream_cb.h>
#include <settings.h>
#include <stdbool.h>
#include <tieredcache.h>

/* Where the host has none of it (weak), files go through the proxy. */
int mpv_stream_cb_add_ro(mpv_handle *ctx, const char *protocol, void *user_data, mpv_stream_cb_open_ro_fn open_fn)
    __attribute__((weak));

typedef struct plugin {
    mpv_handle *mpv;
    settings given;      /* as of the last film */
    tiered_cache *cache; /* NULL until the first film that is taken; one that fails to open stays NULL */
    bool has_tried;      /* to open it */
    bool can_stream;     /* tiered:// is ours */
    bool is_playing;
    bool has_user_data;  /* mpv 0.36 and later */
    char *url;           /* what was to be opened, and what was put in its place by the last hook */
    char *replacement;
} plugin;

/* ---- plugin.c ---- */
void plugin_say(plugin *self, const char *text); /* in the terminal, as a line of mpv's log */
void plugin_complain(void *self, const char *text); /* the same, for the settings */

/* ---- streams.c: tiered://NUMBER/URL, where NUMBER stands for the fields that are sent ---- */
bool streams_register(plugin *self);
/* A new string: the URL that reads url with these fields. Takes nothing over. */
char *streams_url(const char *url, const text_list *fields, int32_t deadline_ms);
/* The stream that was opened first of those of url, or of all; the caller releases it. NULL where there is none. */
tiered_stream *streams_open(const char *url);
/* Tells what went wrong in streams that were closed, and forgets it. */
void streams_complain(plugin *self);

/* ---- fields.c: what mpv's options have it send ---- */
/* Adds the fields that mpv sends for url. */
void fields_collect(plugin *self, const char *url, text_list *fields);

/* ---- routes.c ---- */
/* A new string: what mpv is to open in place of url, which may be an EDL; NULL: url itself. */
char *routes_replace(plugin *self, const char *url);

/* ---- held.c: what is stored of the film that plays, prefetching, and the messages of other scripts ---- */
void held_publish(plugin *self);
void held_message(plugin *self, const mpv_event_client_message *message);
void held_prefetch(plugin *self);
void held_reserve(plugin *self);

#endif
