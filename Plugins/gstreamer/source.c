/* The element: reads a film from the cache, or hands on what its relay brings. */
#include "source.h"

/* How long the thread of an application is held for the answer of an origin, in microseconds, where what follows may
 * pull. What answers by then, and all that is stored, is read in pull mode; the rest in push mode. */
static const gint64 patience = 100000;

static GstStaticPadTemplate source_template =
    GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);

G_DEFINE_TYPE_WITH_CODE(TieredSource, tiered_source, GST_TYPE_BASE_SRC,
                        G_IMPLEMENT_INTERFACE(GST_TYPE_URI_HANDLER, properties_uri_handler))

/* Takes the film, or the relay, out of the element and ends it. */
static void source_close(TieredSource *source) {
    GST_OBJECT_LOCK(source);
    Film *film = source->film;
    Relay *relay = source->relay;
    source->film = NULL;
    source->relay = NULL;
    GST_OBJECT_UNLOCK(source);
    if (relay) relay_close(relay);
    if (film) film_close(film);
}

static Film *current_film(TieredSource *source) {
    GST_OBJECT_LOCK(source);
    Film *film = source->film ? film_ref(source->film) : NULL;
    GST_OBJECT_UNLOCK(source);
    return film;
}

static Relay *current_relay(TieredSource *source) {
    GST_OBJECT_LOCK(source);
    Relay *relay = source->relay ? relay_ref(source->relay) : NULL;
    GST_OBJECT_UNLOCK(source);
    return relay;
}

Film *source_film(TieredSource *source, gboolean opens) {
    Film *film = current_film(source);
    if (!opens) return film;
    gchar *location = properties_location(source);
    if (film && location && g_str_equal(film->url, location)) {
        g_free(location);
        return film;
    }
    if (film) film_unref(film);
    source_close(source);
    if (!location) return NULL;
    gchar **fields = properties_fields(source);
    FilmRequest request = {.url = location,
                           .fields = fields,
                           .deadline = properties_deadline(source),
                           .is_direct = properties_go_direct(source)};
    film = film_open(&request);
    g_strfreev(fields);
    g_free(location);
    GST_OBJECT_LOCK(source);
    source->film = film_ref(film);
    GST_OBJECT_UNLOCK(source);
    return film;
}

Way source_way(Film *film) { return film_wait(film, g_get_monotonic_time() + patience); }

static gboolean source_start(GstBaseSrc *base) {
    TieredSource *source = TIERED_SOURCE(base);
    Film *film = source_film(source, TRUE);
    if (!film) {
        GST_ELEMENT_ERROR(base, RESOURCE, OPEN_READ, ("No URL is set."), ("No location set"));
        return FALSE;
    }
    film_unref(film);
    source->has_told_headers = FALSE;
    return TRUE;
}

static gboolean source_stop(GstBaseSrc *base) {
    source_close(TIERED_SOURCE(base));
    return TRUE;
}

static GstStateChangeReturn source_change_state(GstElement *element, GstStateChange transition) {
    GstStateChangeReturn result =
        GST_ELEMENT_CLASS(tiered_source_parent_class)->change_state(element, transition);
    /* A query may have opened it, and nothing have started it. */
    if (transition == GST_STATE_CHANGE_READY_TO_NULL) source_close(TIERED_SOURCE(element));
    return result;
}

static gboolean set_flushing(TieredSource *source, gboolean is_flushing) {
    Film *film = source_film(source, FALSE);
    if (!film) return TRUE;
    GST_DEBUG_OBJECT(source, "flushing: %d", is_flushing);
    film_flush(film, is_flushing); /* first: read_relay looks at it when there is a relay */
    film_unref(film);
    Relay *relay = current_relay(source);
    if (relay) {
        relay_flush(relay, is_flushing);
        relay_unref(relay);
    }
    return TRUE;
}

static gboolean source_unlock(GstBaseSrc *base) { return set_flushing(TIERED_SOURCE(base), TRUE); }
static gboolean source_unlock_stop(GstBaseSrc *base) { return set_flushing(TIERED_SOURCE(base), FALSE); }

/* Never waits, as source_is_seekable does not. */
static gboolean source_size(GstBaseSrc *base, guint64 *size) {
    TieredSource *source = TIERED_SOURCE(base);
    Film *film = source_film(source, FALSE);
    Relay *relay = current_relay(source);
    gboolean is_known = FALSE;
    if (film && film_wait(film, 0) == WAY_CACHE) {
        int64_t known = tiered_size(film->stream);
        is_known = known >= 0;
        if (is_known) *size = known;
    } else if (relay) {
        is_known = relay_size(relay, size);
    }
    if (relay) relay_unref(relay);
    if (film) film_unref(film);
    return is_known;
}

/* souphttpsrc tells the fields of request and answer in a message, and in an event that stays on the pad. */
static void tell_headers(TieredSource *source, Film *film) {
    if (source->has_told_headers) return;
    source->has_told_headers = TRUE;
    gchar **fields = properties_fields(source);
    GstStructure *headers = headers_structure(film, fields);
    g_strfreev(fields);
    GstElement *element = GST_ELEMENT(source);
    gst_element_post_message(element,
                             gst_message_new_element(GST_OBJECT(source), gst_structure_copy(headers)));
    guint64 size;
    if (source_size(GST_BASE_SRC(source), &size)) {
        GST_OBJECT_LOCK(source);
        GST_BASE_SRC(source)->segment.duration = size;
        GST_OBJECT_UNLOCK(source);
        gst_element_post_message(element, gst_message_new_duration_changed(GST_OBJECT(source)));
    }
    GstPad *pad = GST_BASE_SRC_PAD(source);
    if (GST_PAD_MODE(pad) != GST_PAD_MODE_PUSH) return gst_structure_free(headers);
    GstCaps *caps = headers_caps(film);
    if (caps) {
        gst_base_src_set_caps(GST_BASE_SRC(source), caps);
        gst_caps_unref(caps);
    }
    gst_pad_push_event(pad, gst_event_new_custom(GST_EVENT_CUSTOM_DOWNSTREAM_STICKY, headers));
}

static GstFlowReturn read_film(TieredSource *source, Film *film, guint64 offset, guint length,
                               GstBuffer **buffer) {
    GstBaseSrc *base = GST_BASE_SRC(source);
    tell_headers(source, film);
    GstBuffer *given = *buffer, *target = given;
    GstMapInfo map;
    if (!target) {
        GstFlowReturn flow =
            GST_BASE_SRC_CLASS(tiered_source_parent_class)->alloc(base, offset, length, &target);
        if (flow != GST_FLOW_OK) return flow;
    }
    if (!gst_buffer_map(target, &map, GST_MAP_WRITE)) {
        if (!given) gst_buffer_unref(target);
        GST_ELEMENT_ERROR(base, RESOURCE, NO_SPACE_LEFT, (NULL), ("A buffer cannot be written"));
        return GST_FLOW_ERROR;
    }
    gsize count = MIN(length, map.size);
    /* Demuxers that pull want all of it; what is pushed goes on as it comes. */
    gboolean is_pulled = GST_PAD_MODE(GST_BASE_SRC_PAD(base)) == GST_PAD_MODE_PULL;
    int64_t n = is_pulled ? tiered_read_full_at(film->stream, offset, map.data, count)
                          : tiered_read_at(film->stream, offset, map.data, count);
    gst_buffer_unmap(target, &map);
    GST_LOG_OBJECT(source, "%u bytes from %" G_GUINT64_FORMAT ": %" G_GINT64_FORMAT, length, offset, (gint64)n);
    if (n > 0) {
        gst_buffer_set_size(target, n);
        GST_BUFFER_OFFSET(target) = offset;
        GST_BUFFER_OFFSET_END(target) = offset + n;
        *buffer = target;
        return GST_FLOW_OK;
    }
    if (!given) gst_buffer_unref(target);
    if (n == 0) return GST_FLOW_EOS;
    return trouble(base, film, (int)n, TRUE);
}

static GstFlowReturn read_relay(TieredSource *source, Film *film, guint64 offset, GstBuffer **buffer) {
    Relay *relay = source->relay; /* made and freed by this thread, or when it has stopped */
    if (!relay) {
        relay = relay_new(GST_BASE_SRC(source), film->relay_url, offset);
        if (!relay) return GST_FLOW_ERROR;
        GST_OBJECT_LOCK(source);
        source->relay = relay;
        GST_OBJECT_UNLOCK(source);
        if (film_is_flushing(film)) relay_flush(relay, TRUE);
    }
    return relay_take(relay, buffer);
}

static GstFlowReturn source_create(GstBaseSrc *base, guint64 offset, guint length, GstBuffer **buffer) {
    TieredSource *source = TIERED_SOURCE(base);
    Film *film = source_film(source, FALSE);
    if (!film) return GST_FLOW_FLUSHING;
    Way way = film_wait(film, -1);
    GstFlowReturn flow = GST_FLOW_FLUSHING;
    if (way == WAY_CACHE)
        flow = read_film(source, film, offset, length, buffer);
    else if (way == WAY_RELAY)
        flow = read_relay(source, film, offset, buffer);
    else if (way == WAY_NONE)
        flow = trouble(base, film, film->status, FALSE);
    film_unref(film);
    return flow;
}

static gboolean source_is_seekable(GstBaseSrc *base) {
    TieredSource *source = TIERED_SOURCE(base);
    Film *film = source_film(source, FALSE);
    if (!film) return FALSE;
    Relay *relay = current_relay(source);
    gboolean is_seekable = TRUE; /* until the origin says otherwise */
    Way way = film_wait(film, 0);
    if (way == WAY_CACHE)
        is_seekable = tiered_is_seekable(film->stream);
    else if (way == WAY_RELAY)
        is_seekable = relay && relay_is_seekable(relay);
    if (relay) relay_unref(relay);
    film_unref(film);
    return is_seekable;
}

static gboolean source_do_seek(GstBaseSrc *base, GstSegment *segment) {
    TieredSource *source = TIERED_SOURCE(base);
    if (segment->rate < 0 || segment->format != GST_FORMAT_BYTES) return FALSE;
    /* create() is told the offset; a relay has to go there. */
    Relay *relay = current_relay(source);
    if (!relay) return TRUE;
    Relay *next = relay_seek(relay, segment->start, segment->stop);
    relay_unref(relay);
    if (!next) return FALSE;
    GST_OBJECT_LOCK(source);
    source->relay = next;
    GST_OBJECT_UNLOCK(source);
    relay_close(relay);
    return TRUE;
}

static void source_set_context(GstElement *element, GstContext *context) {
    TieredSource *source = TIERED_SOURCE(element);
    if (g_str_equal(gst_context_get_context_type(context), "http-headers")) {
        GstStructure *headers = gst_structure_copy(gst_context_get_structure(context));
        GST_OBJECT_LOCK(source);
        g_clear_pointer(&source->context_headers, gst_structure_free);
        source->context_headers = headers;
        GST_OBJECT_UNLOCK(source);
    }
    GST_ELEMENT_CLASS(tiered_source_parent_class)->set_context(element, context);
}

static void source_finalize(GObject *object) {
    TieredSource *source = TIERED_SOURCE(object);
    source_close(source);
    properties_clear(source);
    G_OBJECT_CLASS(tiered_source_parent_class)->finalize(object);
}

static void tiered_source_class_init(TieredSourceClass *class) {
    GObjectClass *object = G_OBJECT_CLASS(class);
    GstElementClass *element = GST_ELEMENT_CLASS(class);
    GstBaseSrcClass *base = GST_BASE_SRC_CLASS(class);
    object->finalize = source_finalize;
    properties_install(object);
    gst_element_class_add_static_pad_template(element, &source_template);
    gst_element_class_set_static_metadata(element, "HTTP client source with a cache", "Source/Network",
                                          "Reads http and https, and keeps what it has fetched",
                                          "The TieredCache authors");
    element->change_state = source_change_state;
    element->set_context = source_set_context;
    base->start = source_start;
    base->stop = source_stop;
    base->unlock = source_unlock;
    base->unlock_stop = source_unlock_stop;
    base->create = source_create;
    base->get_size = source_size;
    base->is_seekable = source_is_seekable;
    base->do_seek = source_do_seek;
    base->query = source_query;
    queries_init(GST_BASE_SRC_CLASS(tiered_source_parent_class));
}

static void tiered_source_init(TieredSource *source) {
    properties_init(source);
    gst_base_src_set_format(GST_BASE_SRC(source), GST_FORMAT_BYTES);
    gst_base_src_set_blocksize(GST_BASE_SRC(source), 65536);
}
