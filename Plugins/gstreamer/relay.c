/* An souphttpsrc inside the element, for what the cache is not for. Its pad leads to a pad of ours, which keeps one
 * buffer until the element's own thread takes it; what it posts is posted for the element.
 *
 * Each seek has a relay of its own: an souphttpsrc that is told to seek while it waits for an answer hangs, one that is
 * asked whether it can seek waits for the answer, and one that is stopped while it reads may crash in libsoup 3.2. */
#include "source.h"

struct Relay {
    gint references;
    GstBaseSrc *owner;
    gchar *url;
    GstElement *inner;
    GstPad *sink;
    GstBus *bus;
    GMutex lock;
    GCond changed;
    GstBuffer *waiting;
    GQueue events; /* for the element's thread to push */
    gboolean is_ended, has_failed;
    gboolean is_flushing;   /* the element's thread may not wait */
    gboolean drops;         /* nobody takes what comes */
    gboolean is_still;      /* the inner one reads no more */
    gboolean is_seekable;   /* as the last answer says; until then nothing is known */
    gint64 size;            /* -1: unknown */
};

/* What an answer says, on the inner one's thread, which has had it: there the questions do not wait. */
static void note_answer(Relay *relay, GstPad *pad) {
    GstQuery *query = gst_query_new_seeking(GST_FORMAT_BYTES);
    gboolean is_seekable = FALSE;
    gint64 size = -1;
    if (gst_pad_peer_query(pad, query)) gst_query_parse_seeking(query, NULL, &is_seekable, NULL, NULL);
    gst_query_unref(query);
    if (!gst_pad_peer_query_duration(pad, GST_FORMAT_BYTES, &size)) size = -1;
    g_mutex_lock(&relay->lock);
    relay->is_seekable = is_seekable;
    relay->size = size;
    g_mutex_unlock(&relay->lock);
}

static GstFlowReturn chain(GstPad *pad, GstObject *parent, GstBuffer *buffer) {
    (void)parent;
    Relay *relay = gst_pad_get_element_private(pad);
    note_answer(relay, pad);
    g_mutex_lock(&relay->lock);
    while (relay->waiting && !relay->drops) g_cond_wait(&relay->changed, &relay->lock);
    GstFlowReturn flow = relay->drops ? GST_FLOW_FLUSHING : GST_FLOW_OK;
    if (flow != GST_FLOW_OK) {
        relay->is_still = TRUE;
        g_cond_broadcast(&relay->changed);
    } else {
        relay->waiting = buffer;
        buffer = NULL;
        g_cond_broadcast(&relay->changed);
    }
    g_mutex_unlock(&relay->lock);
    if (buffer) gst_buffer_unref(buffer);
    return flow;
}

static gboolean on_event(GstPad *pad, GstObject *parent, GstEvent *event) {
    (void)parent;
    Relay *relay = gst_pad_get_element_private(pad);
    g_mutex_lock(&relay->lock);
    switch (GST_EVENT_TYPE(event)) {
    case GST_EVENT_EOS: relay->is_ended = relay->is_still = TRUE; break;
    case GST_EVENT_CAPS:
    case GST_EVENT_TAG:
    case GST_EVENT_CUSTOM_DOWNSTREAM_STICKY: g_queue_push_tail(&relay->events, gst_event_ref(event)); break;
    default: break;
    }
    g_cond_broadcast(&relay->changed);
    g_mutex_unlock(&relay->lock);
    gst_event_unref(event);
    return TRUE;
}

static gboolean on_query(GstPad *pad, GstObject *parent, GstQuery *query) {
    (void)pad, (void)parent;
    if (GST_QUERY_TYPE(query) == GST_QUERY_ACCEPT_CAPS) {
        gst_query_set_accept_caps_result(query, TRUE);
        return TRUE;
    }
    if (GST_QUERY_TYPE(query) != GST_QUERY_CAPS) return FALSE;
    GstCaps *any = gst_caps_new_any();
    gst_query_set_caps_result(query, any);
    gst_caps_unref(any);
    return TRUE;
}

static void repeat_error(Relay *relay, GstMessage *message) {
    GError *error = NULL;
    gchar *debug = NULL;
    const GstStructure *details = NULL;
    gst_message_parse_error(message, &error, &debug);
    gst_message_parse_error_details(message, &details);
    gst_element_post_message(
        GST_ELEMENT(relay->owner),
        gst_message_new_error_with_details(GST_OBJECT(relay->owner), error, debug,
                                           details ? gst_structure_copy(details) : NULL));
    g_error_free(error);
    g_free(debug);
}

/* On the threads of the inner one. */
static GstBusSyncReply on_message(GstBus *bus, GstMessage *message, gpointer data) {
    (void)bus;
    Relay *relay = data;
    GstObject *owner = GST_OBJECT(relay->owner);
    gboolean is_error = GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR;
    g_mutex_lock(&relay->lock);
    gboolean is_wanted = !relay->drops;
    g_mutex_unlock(&relay->lock);
    if (is_wanted && is_error)
        repeat_error(relay, message);
    else if (is_wanted && GST_MESSAGE_TYPE(message) == GST_MESSAGE_ELEMENT)
        gst_element_post_message(
            GST_ELEMENT(owner),
            gst_message_new_element(owner, gst_structure_copy(gst_message_get_structure(message))));
    gst_message_unref(message);
    if (is_error) {
        g_mutex_lock(&relay->lock);
        relay->has_failed = relay->is_still = TRUE;
        g_cond_broadcast(&relay->changed);
        g_mutex_unlock(&relay->lock);
    }
    return GST_BUS_DROP;
}

/* Before it has asked for anything, so that it asks for these bytes alone. */
static void begin_at(GstElement *inner, guint64 start, guint64 stop) {
    GstSeekType kind = stop == GST_CLOCK_TIME_NONE ? GST_SEEK_TYPE_NONE : GST_SEEK_TYPE_SET;
    gst_element_send_event(inner, gst_event_new_seek(1.0, GST_FORMAT_BYTES, GST_SEEK_FLAG_FLUSH, GST_SEEK_TYPE_SET,
                                                     (gint64)start, kind, (gint64)stop));
}

static Relay *open_relay(GstBaseSrc *owner, const gchar *url, guint64 start, guint64 stop) {
    GstElement *inner = gst_element_factory_make("souphttpsrc", NULL);
    if (!inner) {
        GST_ELEMENT_ERROR(owner, CORE, MISSING_PLUGIN, (NULL), ("souphttpsrc is not installed"));
        return NULL;
    }
    Relay *relay = g_new0(Relay, 1);
    relay->references = 1;
    relay->owner = gst_object_ref(owner);
    relay->url = g_strdup(url);
    relay->size = -1;
    relay->inner = gst_object_ref_sink(inner);
    g_mutex_init(&relay->lock);
    g_cond_init(&relay->changed);
    g_queue_init(&relay->events);
    properties_copy(TIERED_SOURCE(owner), inner);
    g_object_set(inner, "location", url, NULL);

    relay->sink = gst_object_ref_sink(gst_pad_new("relay", GST_PAD_SINK));
    gst_pad_set_element_private(relay->sink, relay);
    gst_pad_set_chain_function(relay->sink, chain);
    gst_pad_set_event_function(relay->sink, on_event);
    gst_pad_set_query_function(relay->sink, on_query);
    gst_pad_set_active(relay->sink, TRUE);
    GstPad *source = gst_element_get_static_pad(inner, "src");
    gst_pad_link_full(source, relay->sink, GST_PAD_LINK_CHECK_NOTHING);
    gst_object_unref(source);

    relay->bus = gst_bus_new();
    gst_bus_set_sync_handler(relay->bus, on_message, relay, NULL);
    gst_element_set_bus(inner, relay->bus);
    gst_element_set_state(inner, GST_STATE_READY);
    if (start || stop != GST_CLOCK_TIME_NONE) begin_at(inner, start, stop);
    return relay;
}

Relay *relay_new(GstBaseSrc *owner, const gchar *url, guint64 start) {
    Relay *relay = open_relay(owner, url, start, GST_CLOCK_TIME_NONE);
    if (relay) gst_element_set_state(relay->inner, GST_STATE_PLAYING);
    return relay;
}

static gpointer closing(gpointer data) {
    Relay *relay = data;
    g_mutex_lock(&relay->lock);
    while (!relay->is_still) g_cond_wait(&relay->changed, &relay->lock);
    g_mutex_unlock(&relay->lock);
    gst_element_set_state(relay->inner, GST_STATE_NULL);
    gst_pad_set_active(relay->sink, FALSE);
    gst_element_set_bus(relay->inner, NULL);
    gst_bus_set_sync_handler(relay->bus, NULL, NULL, NULL);
    relay_unref(relay);
    return NULL;
}

void relay_close(Relay *relay) {
    g_mutex_lock(&relay->lock);
    relay->drops = relay->is_flushing = TRUE;
    g_cond_broadcast(&relay->changed);
    g_mutex_unlock(&relay->lock);
    g_thread_unref(g_thread_new("tieredcachesrc", closing, relay));
}

Relay *relay_ref(Relay *relay) {
    g_atomic_int_inc(&relay->references);
    return relay;
}

void relay_unref(Relay *relay) {
    if (!g_atomic_int_dec_and_test(&relay->references)) return;
    gst_object_unref(relay->bus);
    gst_object_unref(relay->inner);
    gst_object_unref(relay->sink);
    gst_object_unref(relay->owner);
    gst_clear_buffer(&relay->waiting);
    g_queue_clear_full(&relay->events, (GDestroyNotify)gst_event_unref);
    g_free(relay->url);
    g_mutex_clear(&relay->lock);
    g_cond_clear(&relay->changed);
    g_free(relay);
}

static void push_event(GstBaseSrc *owner, GstEvent *event) {
    if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS) {
        gst_pad_push_event(GST_BASE_SRC_PAD(owner), event);
        return;
    }
    GstCaps *caps;
    gst_event_parse_caps(event, &caps);
    gst_base_src_set_caps(owner, caps);
    gst_event_unref(event);
}

GstFlowReturn relay_take(Relay *relay, GstBuffer **buffer) {
    GstFlowReturn flow = GST_FLOW_FLUSHING;
    g_mutex_lock(&relay->lock);
    while (!relay->waiting && !relay->is_ended && !relay->has_failed && !relay->is_flushing)
        g_cond_wait(&relay->changed, &relay->lock);
    GQueue events = relay->events;
    g_queue_init(&relay->events);
    if (!relay->is_flushing) {
        flow = relay->waiting ? GST_FLOW_OK : relay->has_failed ? GST_FLOW_ERROR : GST_FLOW_EOS;
        *buffer = relay->waiting;
        relay->waiting = NULL;
        g_cond_broadcast(&relay->changed);
    }
    g_mutex_unlock(&relay->lock);
    GstEvent *event;
    while ((event = g_queue_pop_head(&events))) push_event(relay->owner, event);
    return flow;
}

void relay_flush(Relay *relay, gboolean is_flushing) {
    g_mutex_lock(&relay->lock);
    relay->is_flushing = is_flushing;
    g_cond_broadcast(&relay->changed);
    g_mutex_unlock(&relay->lock);
}

Relay *relay_seek(Relay *relay, guint64 start, guint64 stop) {
    Relay *next = relay_is_seekable(relay) ? open_relay(relay->owner, relay->url, start, stop) : NULL;
    if (!next) return NULL;
    guint64 size;
    next->is_seekable = TRUE;
    if (relay_size(relay, &size)) next->size = (gint64)size;
    gst_element_set_state(next->inner, GST_STATE_PLAYING);
    return next;
}

gboolean relay_is_seekable(Relay *relay) {
    g_mutex_lock(&relay->lock);
    gboolean is_seekable = relay->is_seekable;
    g_mutex_unlock(&relay->lock);
    return is_seekable;
}

gboolean relay_size(Relay *relay, guint64 *size) {
    g_mutex_lock(&relay->lock);
    gboolean is_known = relay->size >= 0;
    if (is_known) *size = (guint64)relay->size;
    g_mutex_unlock(&relay->lock);
    return is_known;
}
