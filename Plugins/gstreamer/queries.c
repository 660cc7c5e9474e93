/* Queries: how it can be read, where it is, how large it is, and what of it is held. */
#include "source.h"

static GstBaseSrcClass *parent_class;

void queries_init(GstBaseSrcClass *parent) { parent_class = parent; }

/* uridecodebin and urisourcebin look for the type of what http brings by an element of their own, and put a queue
 * behind it. They reckon with sources that push, as all others for http do: with one that can be pulled, urisourcebin
 * 1.22 now and then goes on pushing at a pad that is being pulled already, and hangs. */
static gboolean has_queue(GstBaseSrc *base) {
    GstObject *parent = gst_object_get_parent(GST_OBJECT(base));
    GstElementFactory *factory = GST_IS_ELEMENT(parent) ? gst_element_get_factory(GST_ELEMENT(parent)) : NULL;
    const gchar *name = factory ? GST_OBJECT_NAME(factory) : "";
    gboolean is_one = g_str_equal(name, "uridecodebin") || g_str_equal(name, "urisourcebin");
    if (parent) gst_object_unref(parent);
    return is_one;
}

/* What is linked asks this before it is activated. The class above would start and stop the element for it. */
static gboolean answer_scheduling(GstBaseSrc *base, GstQuery *query) {
    TieredSource *source = TIERED_SOURCE(base);
    gboolean may_pull = gst_pad_is_linked(GST_BASE_SRC_PAD(base)) && !has_queue(base);
    gboolean is_running = GST_OBJECT_FLAGS(base) & (GST_BASE_SRC_FLAG_STARTED | GST_BASE_SRC_FLAG_STARTING);
    Film *film = source_film(source, may_pull && !is_running);
    gboolean is_pullable = FALSE;
    if (film) {
        /* A source without ranges costs a wait at each seek, of which there are more in pull mode. */
        is_pullable = may_pull && source_way(film) == WAY_CACHE && tiered_is_seekable(film->stream);
        film_unref(film);
    }
    gst_query_set_scheduling(query, GST_SCHEDULING_FLAG_SEEKABLE | GST_SCHEDULING_FLAG_BANDWIDTH_LIMITED, 1, -1,
                             0);
    if (is_pullable) gst_query_add_scheduling_mode(query, GST_PAD_MODE_PULL);
    gst_query_add_scheduling_mode(query, GST_PAD_MODE_PUSH);
    return TRUE;
}

/* A playlist is where its proxy is: demuxers resolve what it lists against that. */
static gboolean answer_uri(TieredSource *source, GstQuery *query) {
    Film *film = source_film(source, FALSE);
    gchar *location = properties_location(source);
    const gchar *uri = location;
    if (film && film_wait(film, 0) == WAY_RELAY && film->relay_url) uri = film->relay_url;
    if (uri) gst_query_set_uri(query, uri);
    gboolean is_known = uri != NULL;
    g_free(location);
    if (film) film_unref(film);
    return is_known;
}

static gint64 in_format(GstFormat format, gint64 bytes, gint64 size) {
    if (format == GST_FORMAT_BYTES) return bytes;
    return size > 0 ? (gint64)gst_util_uint64_scale(GST_FORMAT_PERCENT_MAX, bytes, size) : 0;
}

/* The ranges that are held, and in the main range the one around the place that is read. */
static gboolean answer_buffering(GstBaseSrc *base, Film *film, GstQuery *query) {
    GstFormat format;
    gst_query_parse_buffering_range(query, &format, NULL, NULL, NULL);
    int64_t size = tiered_size(film->stream);
    if (format == GST_FORMAT_DEFAULT) format = GST_FORMAT_BYTES;
    if ((format != GST_FORMAT_BYTES && format != GST_FORMAT_PERCENT) || size <= 0) return FALSE;
    int64_t bounds[2 * 64];
    int64_t count = MIN(tiered_stream_stored(film->stream, bounds, 64), 64), held = 0;
    if (count < 0) return FALSE;
    GST_OBJECT_LOCK(base);
    gint64 place = (gint64)base->segment.position, start = place, stop = place;
    GST_OBJECT_UNLOCK(base);
    for (int64_t i = 0; i < count; i++) {
        held += bounds[2 * i + 1] - bounds[2 * i];
        if (bounds[2 * i] <= place && place <= bounds[2 * i + 1]) start = bounds[2 * i], stop = bounds[2 * i + 1];
    }
    gst_query_set_buffering_percent(query, FALSE, (gint)(held * 100 / size));
    gst_query_set_buffering_stats(query, GST_BUFFERING_DOWNLOAD, -1, -1, -1);
    gst_query_set_buffering_range(query, format, in_format(format, start, size), in_format(format, stop, size),
                                  held == size ? 0 : -1);
    for (int64_t i = 0; i < count; i++)
        gst_query_add_buffering_range(query, in_format(format, bounds[2 * i], size),
                                      in_format(format, bounds[2 * i + 1], size));
    return TRUE;
}

gboolean source_query(GstBaseSrc *base, GstQuery *query) {
    TieredSource *source = TIERED_SOURCE(base);
    gboolean is_answered = FALSE;
    switch (GST_QUERY_TYPE(query)) {
    case GST_QUERY_SCHEDULING: return answer_scheduling(base, query);
    case GST_QUERY_URI: return answer_uri(source, query);
    case GST_QUERY_BUFFERING: {
        Film *film = source_film(source, FALSE);
        if (film && film_wait(film, 0) == WAY_CACHE) is_answered = answer_buffering(base, film, query);
        if (film) film_unref(film);
        break;
    }
    default: break;
    }
    return is_answered || parent_class->query(base, query);
}
