/* An souphttpsrc inside the element, for what the cache is not for. Its pad leads to a pad of ours, which keeps one
 * buffer until the element's own thread takes it; what it posts is posted for the element. */
#include "source.h"

struct Relay {
    gint references;
    GstBaseSrc *owner; /* outlives relay_close */
    GstElement *inner;
    GstPad *sink;
    GstBus *bus;
    GMutex lock;
    GCond changed;
    GstBuffer *waiting;
    GQueue events; /* for the element's thread to push */
    gboolean is_ended, has_failed;
    gboolean is_flushing;   /* the element's thread may not wait */
    gboolean drops;         /* the inner one's may not */
};

static GstFlowReturn chain(GstPad *pad, GstObject *parent, GstBuffer *buffer) {
    (void)parent;
    Relay *relay = gst_pad_get_element_private(pad);
    g_mutex_lock(&relay->lock);
    while (relay->waiting && !relay->drops) g_cond_wait(&relay->changed, &relay->lock);
    GstFlowReturn flow = relay->drops ? GST_FLOW_FLUSHING : GST_FLOW_OK;
    if (flow == GST_FLOW_OK) {
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
    case GST_EVENT_FLUSH_START:
        relay->drops = TRUE;
        gst_clear_buffer(&relay->waiting);
        break;
    case GST_EVENT_FLUSH_STOP:
        relay->drops = FALSE;
        relay->is_ended = FALSE;
        break;
    case GST_EVENT_EOS: relay->is_ended = TRUE; break;
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
    g_mutex_lock(&relay->lock);
    relay->has_failed = TRUE;
    g_cond_broadcast(&relay->changed);
    g_mutex_unlock(&relay->lock);
}

/* On the threads of the inner one. */
static GstBusSyncReply on_message(GstBus *bus, GstMessage *message, gpointer data) {
    (void)bus;
    Relay *relay = data;
    GstObject *owner = GST_OBJECT(relay->owner);
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR)
        repeat_error(relay, message);
    else if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ELEMENT)
        gst_element_post_message(
            GST_ELEMENT(owner),
            gst_message_new_element(owner, gst_structure_copy(gst_message_get_structure(message))));
    gst_message_unref(message);
    return GST_BUS_DROP;
}

static gboolean send_seek(Relay *relay, guint64 start, guint64 stop) {
    GstSeekType kind = stop == GST_CLOCK_TIME_NONE ? GST_SEEK_TYPE_NONE : GST_SEEK_TYPE_SET;
    return gst_element_send_event(relay->inner,
                                  gst_event_new_seek(1.0, GST_FORMAT_BYTES, GST_SEEK_FLAG_FLUSH, GST_SEEK_TYPE_SET,
                                                     (gint64)start, kind, (gint64)stop));
}

Relay *relay_new(GstBaseSrc *owner, const gchar *url, guint64 start) {
    GstElement *inner = gst_element_factory_make("souphttpsrc", NULL);
    if (!inner) {
        GST_ELEMENT_ERROR(owner, CORE, MISSING_PLUGIN, (NULL), ("souphttpsrc is not installed"));
        return NULL;
    }
    Relay *relay = g_new0(Relay, 1);
    relay->references = 1;
    relay->owner = owner;
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
    if (start) send_seek(relay, start, GST_CLOCK_TIME_NONE);
    gst_element_set_state(inner, GST_STATE_PLAYING);
    return relay;
}

void relay_close(Relay *relay) {
    g_mutex_lock(&relay->lock);
    relay->drops = TRUE;
    relay->is_flushing = TRUE;
    g_cond_broadcast(&relay->changed);
    g_mutex_unlock(&relay->lock);
    gst_element_set_state(relay->inner, GST_STATE_NULL);
    gst_pad_set_active(relay->sink, FALSE);
    gst_element_set_bus(relay->inner, NULL);
    gst_bus_set_sync_handler(relay->bus, NULL, NULL, NULL);
    relay_unref(relay);
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
    gst_clear_buffer(&relay->waiting);
    g_queue_clear_full(&relay->events, (GDestroyNotify)gst_event_unref);
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

gboolean relay_seek(Relay *relay, guint64 start, guint64 stop) { return send_seek(relay, start, stop); }

gboolean relay_is_seekable(Relay *relay) {
    GstQuery *query = gst_query_new_seeking(GST_FORMAT_BYTES);
    gboolean is_seekable = FALSE;
    if (gst_element_query(relay->inner, query)) gst_query_parse_seeking(query, NULL, &is_seekable, NULL, NULL);
    gst_query_unref(query);
    return is_seekable;
}

gboolean relay_size(Relay *relay, guint64 *size) {
    gint64 known = -1;
    if (!gst_element_query_duration(relay->inner, GST_FORMAT_BYTES, &known) || known < 0) return FALSE;
    *size = known;
    return TRUE;
}
