/* An access of VLC for http and https, before its own: films are read through the cache.
 *
 * The ABI is that of VLC 3.0 (vlc_entry__3_0_0f): another VLC finds no entry here, and goes without. What this
 * module does not take (hosts that are excluded, live radio, errors) it declines, and VLC opens the URL as ever.
 * Playlists and manifests are sent to the proxy of this process, since VLC fetches by itself what they name. */
#define MODULE_STRING "tieredcache"
#define VLC_MODULE_COPYRIGHT "Copyright (c) 2026 The TieredCache authors"
#define VLC_MODULE_LICENSE "MIT License"

#include <string.h>
#include <vlc_common.h>
#include <vlc_access.h>
#include <vlc_interrupt.h>
#include <vlc_plugin.h>

#include "host.h"

/* A read that fails is tried again so often: for a minute, by the deadline of a request. */
enum { attempts = 12 };

typedef struct film {
    tiered_stream *stream;
    int failures;
} film;

static void interrupt_film(void *stream) { tiered_interrupt(stream); }

/* What VLC stops while the stream waits ends within 200 ms. Callbacks have no other way to know. */
static void begin_waiting(tiered_stream *stream) { vlc_interrupt_register(interrupt_film, stream); }

static void end_waiting(tiered_stream *stream) {
    if (vlc_interrupt_unregister() != 0) tiered_resume(stream);
}

static ssize_t read_film(stream_t *access, void *buffer, size_t count) {
    film *film = access->p_sys;
    if (count == 0) return 0;
    begin_waiting(film->stream);
    int64_t n = tiered_read(film->stream, buffer, count);
    end_waiting(film->stream);
    if (n >= 0) {
        film->failures = 0;
        return (ssize_t)n;
    }
    if (n == TIERED_E_INTERRUPTED) return -1;
    char text[256];
    tiered_stream_error(film->stream, text, sizeof text);
    if ((n == TIERED_E_NETWORK || n == TIERED_E_TIMEOUT) && ++film->failures < attempts) {
        msg_Warn(access, "%s; trying again", text);
        return -1;
    }
    msg_Err(access, "%s", text);
    return 0;
}

static int seek_film(stream_t *access, uint64_t offset) {
    film *film = access->p_sys;
    if (offset > INT64_MAX) return VLC_EGENERIC;
    return tiered_seek(film->stream, (int64_t)offset, SEEK_SET) < 0 ? VLC_EGENERIC : VLC_SUCCESS;
}

/* Whether all of it is stored: it is then as fast as a file, and VLC needs no buffer of its own. */
static bool is_whole(tiered_stream *stream) {
    int64_t bounds[2], size = tiered_size(stream);
    return size > 0 && tiered_stream_stored(stream, bounds, 1) == 1 && bounds[0] == 0 && bounds[1] == size;
}

static char *type_of(tiered_stream *stream) {
    char type[256];
    int64_t length = tiered_stream_field(stream, "Content-Type", type, sizeof type);
    return length > 0 && length < (int64_t)sizeof type ? strdup(type) : NULL;
}

static int control_film(stream_t *access, int query, va_list arguments) {
    film *film = access->p_sys;
    int64_t size;
    char *type;
    switch (query) {
    case STREAM_CAN_SEEK:
        *va_arg(arguments, bool *) = tiered_is_seekable(film->stream);
        return VLC_SUCCESS;
    case STREAM_CAN_FASTSEEK:
        *va_arg(arguments, bool *) = is_whole(film->stream);
        return VLC_SUCCESS;
    case STREAM_CAN_PAUSE:
    case STREAM_CAN_CONTROL_PACE:
        *va_arg(arguments, bool *) = true;
        return VLC_SUCCESS;
    case STREAM_GET_SIZE:
        if ((size = tiered_size(film->stream)) < 0) return VLC_EGENERIC;
        *va_arg(arguments, uint64_t *) = (uint64_t)size;
        return VLC_SUCCESS;
    case STREAM_GET_PTS_DELAY:
        *va_arg(arguments, int64_t *) = INT64_C(1000) * var_InheritInteger(access, "network-caching");
        return VLC_SUCCESS;
    case STREAM_GET_CONTENT_TYPE:
        if ((type = type_of(film->stream)) == NULL) return VLC_EGENERIC;
        *va_arg(arguments, char **) = type;
        return VLC_SUCCESS;
    case STREAM_SET_PAUSE_STATE: /* Nothing is fetched for a reader that does not read. */
        return VLC_SUCCESS;
    default:
        return VLC_EGENERIC;
    }
}

/* Whether it is a playlist or manifest whose parts VLC fetches by itself. */
static bool names_parts(tiered_stream *stream) {
    char type[256], start[2048];
    if (tiered_stream_field(stream, "Content-Type", type, sizeof type) > 0 &&
        (strcasestr(type, "mpegurl") || strcasestr(type, "dash+xml")))
        return true;
    int64_t length = tiered_read_at(stream, 0, start, sizeof start - 1);
    if (length <= 0) return false;
    start[length] = 0;
    /* Lists of films (M3U) have no such tags: VLC opens each of them here. */
    return (strncmp(start, "#EXTM3U", 7) == 0 && strstr(start, "#EXT-X-")) || strstr(start, "<MPD");
}

/* Radio: VLC asks for the titles in it, and there is no end to store. */
static bool is_radio(tiered_stream *stream) {
    return tiered_size(stream) < 0 && (tiered_stream_field(stream, "icy-name", NULL, 0) >= 0 ||
                                       tiered_stream_field(stream, "icy-br", NULL, 0) >= 0);
}

/* VLC goes on with the URL that it gets. */
static int redirect(stream_t *access, tiered_cache *cache) {
    char *url = settings_proxied(cache, access->psz_url);
    if (url == NULL) return VLC_EGENERIC;
    access->psz_url = url; /* the old one is VLC's */
    return VLC_ACCESS_REDIRECT;
}

static bool add_variable(stream_t *access, text_list *fields, const char *name, const char *variable) {
    char *value = var_InheritString(access, variable);
    if (value == NULL) return true;
    char *field = text_format("%s: %s", name, value);
    free(value);
    bool is_added = field != NULL && text_add(fields, field);
    free(field);
    return is_added;
}

static tiered_stream *new_stream(stream_t *access, const host *host) {
    text_list fields = {0};
    tiered_stream *stream = NULL;
    if (add_variable(access, &fields, "User-Agent", "http-user-agent") &&
        add_variable(access, &fields, "Referer", "http-referrer")) {
        tiered_request request = {.size = sizeof request,
                                  .url = access->psz_url,
                                  .fields = (const char *const *)fields.items,
                                  .deadline_ms = 5000};
        if (tiered_stream_new(host->cache, &request, &stream) != TIERED_OK) stream = NULL;
    }
    text_empty(&fields);
    return stream;
}

/* VLC_SUCCESS, VLC_ACCESS_REDIRECT, or an error: VLC's own access is asked then, and says what is wrong. */
static int prepare(stream_t *access, const host *host, tiered_stream *stream) {
    begin_waiting(stream);
    int status = tiered_stream_prepare(stream);
    bool has_parts = status == TIERED_OK && names_parts(stream);
    end_waiting(stream);
    if (status != TIERED_OK) {
        char text[256];
        tiered_stream_error(stream, text, sizeof text);
        msg_Dbg(access, "left to VLC: %s", text);
        return VLC_EGENERIC;
    }
    if (has_parts) return redirect(access, host->cache);
    return is_radio(stream) ? VLC_EGENERIC : VLC_SUCCESS;
}

static int open_access(vlc_object_t *object) {
    stream_t *access = (stream_t *)object;
    const host *host = host_of(object);
    if (host == NULL || var_InheritBool(access, "http-continuous")) return VLC_EGENERIC;
    if (url_is_playlist(access->psz_url)) return redirect(access, host->cache);
    tiered_stream *stream = new_stream(access, host);
    if (stream == NULL) return VLC_EGENERIC;
    int status = prepare(access, host, stream);
    film *film = status == VLC_SUCCESS ? calloc(1, sizeof *film) : NULL;
    if (film == NULL) {
        tiered_stream_release(stream);
        return status == VLC_SUCCESS ? VLC_ENOMEM : status;
    }
    film->stream = stream;
    access->p_sys = film;
    access->pf_read = read_film;
    access->pf_block = NULL;
    access->pf_seek = seek_film;
    access->pf_control = control_film;
    msg_Dbg(access, "through the cache");
    return VLC_SUCCESS;
}

static void close_access(vlc_object_t *object) {
    stream_t *access = (stream_t *)object;
    film *film = access->p_sys;
    tiered_stream_release(film->stream);
    free(film);
}

/* clang-format off */
vlc_module_begin()
    set_shortname("TieredCache")
    set_description("HTTP and HTTPS through TieredCache, which keeps what was fetched")
    set_category(CAT_INPUT)
    set_subcategory(SUBCAT_INPUT_ACCESS)
    set_capability("access", 20) /* VLC's own have 2 and 0 */
    add_shortcut("http", "https")
    set_callbacks(open_access, close_access)
    add_bool("tieredcache", true, "Keep what was fetched", "Play http and https through TieredCache.", false)
    add_string("tieredcache-directory", NULL, "Cache directory", "Where TieredCache keeps what was fetched.", false)
    add_string("tieredcache-exclude", NULL, "Hosts to leave alone", "Hosts that VLC asks by itself.", false)
vlc_module_end()
