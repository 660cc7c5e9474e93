/* tieredcachesrc: reads http and https through TieredCache. What the files of this folder share.
 *
 *   plugin.c     registers the element
 *   source.c     the element: GstBaseSrc's functions
 *   properties.c   its properties, and GstURIHandler
 *   film.c       one opened URL: which way its bytes come
 *   relay.c      what the cache is not for comes from an souphttpsrc inside
 *   headers.c    fields of the request, fields of the answer
 *   queries.c    what is held, how large it is, where it is
 *   trouble.c    statuses of the library as errors of GStreamer
 *   cache.c      what people have set, and the one cache of the process */
#ifndef TIEREDCACHE_GSTREAMER_SOURCE_H
#define TIEREDCACHE_GSTREAMER_SOURCE_H

#include <gst/base/gstbasesrc.h>
#include <gst/gst.h>
#include <tieredcache.h>

GST_DEBUG_CATEGORY_EXTERN(tieredcachesrc_debug);
#define GST_CAT_DEFAULT tieredcachesrc_debug

/* How many properties properties.c has, and 1, as their numbers begin there. */
#define PROPERTY_LIMIT 32

/* ---- film.c ---- */

typedef enum {
    WAY_UNKNOWN, /* the origin has not answered yet */
    WAY_CACHE,   /* from the cache */
    WAY_RELAY,   /* from an souphttpsrc, from `relay_url` */
    WAY_NONE     /* it could not be opened: `status`, `http_status`, `text` */
} Way;

/* One opened URL. A thread opens it, which may outlive the element: hence the count. */
typedef struct {
    gint references;
    tiered_cache *cache;   /* NULL: relayed */
    tiered_stream *stream; /* NULL: relayed */
    gchar *url;
    gboolean is_playlist; /* by its path: not opened here, but by the proxy alone */

    GMutex lock;
    GCond changed;
    Way way;
    gboolean is_flushing; /* between unlock and unlock_stop */
    gboolean is_closed;
    gchar *relay_url;
    int status, http_status;
    gchar *text;
} Film;

typedef struct {
    const gchar *url;
    gchar **fields;     /* "Name: value", or NULL */
    gint deadline;      /* milliseconds, -1 for ever */
    gboolean is_direct; /* past the cache: settings say what it cannot do */
} FilmRequest;

/* Begins to open; never waits. */
Film *film_open(const FilmRequest *request);
/* Ends all that waits for it, and gives it up. */
void film_close(Film *film);
/* Waits for the way until `end`, in monotonic microseconds, or for ever with -1, or until it is flushed. */
Way film_wait(Film *film, gint64 end);
void film_flush(Film *film, gboolean is_flushing);
gboolean film_is_flushing(Film *film);

/* ---- relay.c ---- */

typedef struct Relay Relay;

/* An souphttpsrc that reads `url`; NULL, and an error of `owner`, where there is none. */
Relay *relay_new(GstBaseSrc *owner, const gchar *url, guint64 start);
/* Gives it up; it ends by itself, which takes as long as the origin says nothing. */
void relay_close(Relay *relay);
Relay *relay_ref(Relay *relay);
void relay_unref(Relay *relay);
/* The next buffer, which is the caller's. */
GstFlowReturn relay_take(Relay *relay, GstBuffer **buffer);
void relay_flush(Relay *relay, gboolean is_flushing);
/* Another one, for another place; NULL where the origin has not said that it can do that. */
Relay *relay_seek(Relay *relay, guint64 start, guint64 stop);
gboolean relay_is_seekable(Relay *relay);
gboolean relay_size(Relay *relay, guint64 *size);

/* ---- the element ---- */

typedef struct {
    GstBaseSrc parent;
    /* Under the object's lock: */
    GValue values[PROPERTY_LIMIT];
    GstStructure *context_headers; /* of a context "http-headers" */
    Film *film;                    /* NULL: not open. The element holds it; others by film_of. */
    Relay *relay;                  /* as `film` */
    /* Of the streaming thread: */
    gboolean has_told_headers;
} TieredSource;

typedef struct {
    GstBaseSrcClass parent;
} TieredSourceClass;

#define TIERED_TYPE_SOURCE (tiered_source_get_type())
GType tiered_source_get_type(void);
#define TIERED_SOURCE(object) ((TieredSource *)(object))

/* The film, opened if it was not, or if the location has changed since; NULL where no location is set. Give it
 * back with film_unref. */
Film *source_film(TieredSource *source, gboolean opens);
Film *film_ref(Film *film);
void film_unref(Film *film);
/* Waits for the way, as long as an application's thread may be held. */
Way source_way(Film *film);

/* ---- properties.c ---- */

void properties_install(GObjectClass *class);
void properties_init(TieredSource *source);
void properties_clear(TieredSource *source);
void properties_uri_handler(gpointer interface, gpointer data);
gchar *properties_location(TieredSource *source);
/* Whether something is set that the library cannot do, such as a proxy, or another method. */
gboolean properties_go_direct(TieredSource *source);
/* Hands on what is set to an souphttpsrc. */
void properties_copy(TieredSource *source, GstElement *target);
gchar **properties_fields(TieredSource *source);
gint properties_deadline(TieredSource *source);

/* ---- headers.c ---- */

/* "Name: value" of each field of a structure such as extra-headers. */
void headers_append(GPtrArray *fields, const GstStructure *headers);
/* The structure "http-headers", as souphttpsrc tells it. */
GstStructure *headers_structure(Film *film, gchar **request_fields);
/* What Content-Type says of raw audio; NULL where it says nothing that counts. */
GstCaps *headers_caps(Film *film);

/* ---- queries.c ---- */

gboolean source_query(GstBaseSrc *base, GstQuery *query);
void queries_init(GstBaseSrcClass *parent);

/* ---- trouble.c ---- */

/* Posts the error of a read or an opening, and gives what the streaming thread returns. */
GstFlowReturn trouble(GstBaseSrc *base, Film *film, int status, gboolean is_open);

/* ---- cache.c ---- */

/* The cache of this process, which stays open until it exits; NULL where there is none. */
tiered_cache *cache_shared(void);
/* Whether this URL is to go through the cache; opens it. */
gboolean cache_takes(const gchar *url);
/* The URL that brings another through the proxy of this process, or NULL; waits up to two seconds at the first. */
gchar *cache_proxied(tiered_cache *cache, const gchar *url);

#endif
