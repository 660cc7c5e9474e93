/* A GStreamer application for what gst-play-1.0 cannot be told to do.
 *
 *   host seeks URL PLACE...   start and each seek, to milliseconds: the digest of the picture there, and how long it took
 *   host stop URL             lets it play for a second, and tells how long the way to NULL takes
 *   host two URL              plays it in two pipelines at once, and prints the digest of each one's bytes
 *   host held URL             reads half of it, and prints what the queries say
 *   host error URL            prints the domain, code and HTTP status of the error
 *   host fields URL           sets properties and context, and prints the message http-headers
 *   host range URL FIRST LAST pulls bytes FIRST to LAST, and prints their digest
 *   host hold URL             reads all of it, says so, and keeps the cache open until it is sent a line
 *   host storm URL FILE COUNT eight pipelines seek to COUNT places each, as fast as they can: every byte that comes is the
 *                             file's, and then all play to the end
 *   host cycles URL COUNT     goes from NULL to PLAYING and back COUNT times
 */
#include <gst/gst.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double since(gint64 start) { return (double)(g_get_monotonic_time() - start) / 1000; }

static GstElement *player(const char *url, const char *sink) {
    GstElement *playbin = gst_element_factory_make(g_getenv("PLAYBIN") ? g_getenv("PLAYBIN") : "playbin", NULL);
    GstElement *video = gst_parse_bin_from_description(sink, TRUE, NULL);
    GstElement *audio = gst_element_factory_make("fakesink", NULL);
    g_object_set(audio, "sync", FALSE, NULL);
    g_object_set(playbin, "uri", url, "video-sink", video, "audio-sink", audio, NULL);
    return playbin;
}

static GstMessage *wait_for(GstElement *element, GstMessageType types, int seconds) {
    GstBus *bus = gst_element_get_bus(element);
    GstMessage *message = gst_bus_timed_pop_filtered(bus, (guint64)seconds * GST_SECOND, types | GST_MESSAGE_ERROR);
    gst_object_unref(bus);
    if (!message) {
        fprintf(stderr, "host: nothing came\n");
        exit(1);
    }
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR && !(types & GST_MESSAGE_ERROR)) {
        GError *error = NULL;
        gst_message_parse_error(message, &error, NULL);
        fprintf(stderr, "host: %s\n", error->message);
        exit(1);
    }
    return message;
}

static void tell_picture(GstElement *playbin, const char *what, gint64 start) {
    gst_message_unref(wait_for(playbin, GST_MESSAGE_ASYNC_DONE, 60));
    double took = since(start);
    GstSample *sample = NULL;
    g_signal_emit_by_name(playbin, "convert-sample", NULL, &sample);
    if (!sample) g_object_get(playbin, "sample", &sample, NULL);
    GstMapInfo map;
    gst_buffer_map(gst_sample_get_buffer(sample), &map, GST_MAP_READ);
    gchar *digest = g_compute_checksum_for_data(G_CHECKSUM_MD5, map.data, map.size);
    printf("%s %s %.0f\n", what, digest, took);
    g_free(digest);
    gst_buffer_unmap(gst_sample_get_buffer(sample), &map);
    gst_sample_unref(sample);
}

static void seeks(const char *url, char **places) {
    gint64 start = g_get_monotonic_time();
    GstElement *playbin = player(url, "fakesink sync=true enable-last-sample=true");
    gst_element_set_state(playbin, GST_STATE_PAUSED);
    tell_picture(playbin, "start", start);
    for (; *places; places++) {
        start = g_get_monotonic_time();
        gst_element_seek_simple(playbin, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE,
                                g_ascii_strtoll(*places, NULL, 10) * GST_MSECOND);
        tell_picture(playbin, *places, start);
    }
    gst_element_set_state(playbin, GST_STATE_NULL);
    gst_object_unref(playbin);
}

static void stop(const char *url) {
    GstElement *playbin = player(url, "fakesink sync=true");
    gint64 start = g_get_monotonic_time();
    gst_element_set_state(playbin, GST_STATE_PLAYING);
    double held = since(start);
    g_usleep(1000000);
    start = g_get_monotonic_time();
    gst_element_set_state(playbin, GST_STATE_NULL);
    printf("start %.0f stop %.0f\n", held, since(start));
    gst_object_unref(playbin);
}

typedef struct {
    GChecksum *digest;
    gsize count;
} Bytes;

static void on_handoff(GstElement *sink, GstBuffer *buffer, GstPad *pad, gpointer data) {
    (void)sink, (void)pad;
    Bytes *bytes = data;
    GstMapInfo map;
    gst_buffer_map(buffer, &map, GST_MAP_READ);
    g_checksum_update(bytes->digest, map.data, (gssize)map.size);
    bytes->count += map.size;
    gst_buffer_unmap(buffer, &map);
}

static GstElement *reader(const char *url, Bytes *bytes) {
    GstElement *pipeline = gst_pipeline_new(NULL), *sink = gst_element_factory_make("fakesink", "sink");
    GstElement *source = gst_element_make_from_uri(GST_URI_SRC, url, "source", NULL);
    g_object_set(sink, "sync", FALSE, "signal-handoffs", TRUE, NULL);
    bytes->digest = g_checksum_new(G_CHECKSUM_MD5);
    g_signal_connect(sink, "handoff", G_CALLBACK(on_handoff), bytes);
    gst_bin_add_many(GST_BIN(pipeline), source, sink, NULL);
    gst_element_link(source, sink);
    return pipeline;
}

static void two(const char *url) {
    Bytes bytes[2] = {0};
    GstElement *pipelines[2];
    for (int i = 0; i < 2; i++) pipelines[i] = reader(url, &bytes[i]);
    for (int i = 0; i < 2; i++) gst_element_set_state(pipelines[i], GST_STATE_PLAYING);
    for (int i = 0; i < 2; i++) gst_message_unref(wait_for(pipelines[i], GST_MESSAGE_EOS, 60));
    for (int i = 0; i < 2; i++) {
        gst_element_set_state(pipelines[i], GST_STATE_NULL);
        gst_object_unref(pipelines[i]);
        printf("%s\n", g_checksum_get_string(bytes[i].digest));
        g_checksum_free(bytes[i].digest);
    }
}

static GstElement *pulled(const char *url, GstPad **pad) {
    GstElement *source = gst_element_make_from_uri(GST_URI_SRC, url, NULL, NULL);
    gst_object_ref_sink(source);
    *pad = gst_element_get_static_pad(source, "src");
    GstPad *sink = gst_object_ref_sink(gst_pad_new("sink", GST_PAD_SINK));
    gst_pad_link_full(*pad, sink, GST_PAD_LINK_CHECK_NOTHING);
    gst_element_set_state(source, GST_STATE_READY);
    GstQuery *query = gst_query_new_scheduling();
    gst_pad_query(*pad, query);
    printf("pull %d\n", gst_query_has_scheduling_mode(query, GST_PAD_MODE_PULL));
    gst_query_unref(query);
    gst_pad_activate_mode(*pad, GST_PAD_MODE_PULL, TRUE);
    gst_element_set_state(source, GST_STATE_PAUSED);
    gst_object_unref(sink);
    return source;
}

static void end(GstElement *source, GstPad *pad) {
    gst_pad_activate_mode(pad, GST_PAD_MODE_PULL, FALSE);
    gst_object_unref(pad);
    gst_element_set_state(source, GST_STATE_NULL);
    gst_object_unref(source);
}

static void range(const char *url, guint64 first, guint64 last) {
    GstPad *pad;
    GstElement *source = pulled(url, &pad);
    GstBuffer *buffer = NULL;
    GstFlowReturn flow = gst_pad_get_range(pad, first, (guint)(last + 1 - first), &buffer);
    printf("%s\n", gst_flow_get_name(flow));
    if (flow == GST_FLOW_OK) {
        GstMapInfo map;
        gst_buffer_map(buffer, &map, GST_MAP_READ);
        gchar *digest = g_compute_checksum_for_data(G_CHECKSUM_MD5, map.data, map.size);
        printf("%zu %s\n", map.size, digest);
        g_free(digest);
        gst_buffer_unmap(buffer, &map);
        gst_buffer_unref(buffer);
    }
    end(source, pad);
}

static void held(const char *url) {
    GstPad *pad;
    GstElement *source = pulled(url, &pad);
    GstBuffer *buffer = NULL;
    gint64 size = -1, start = -1, stop = -1;
    gst_pad_query_duration(pad, GST_FORMAT_BYTES, &size);
    for (gint64 offset = 0; offset < size / 2; offset += 65536) {
        if (gst_pad_get_range(pad, (guint64)offset, 65536, &buffer) != GST_FLOW_OK) exit(1);
        gst_clear_buffer(&buffer);
    }
    GstQuery *query = gst_query_new_buffering(GST_FORMAT_BYTES);
    if (!gst_pad_query(pad, query)) exit(1);
    gint percent = -1;
    gst_query_parse_buffering_percent(query, NULL, &percent);
    gst_query_parse_buffering_range(query, NULL, &start, &stop, NULL);
    printf("size %" G_GINT64_FORMAT " range %" G_GINT64_FORMAT " %" G_GINT64_FORMAT " ranges %u percent %d\n", size,
           start, stop, gst_query_get_n_buffering_ranges(query), percent);
    gst_query_unref(query);
    query = gst_query_new_uri();
    gchar *uri = NULL;
    gst_pad_query(pad, query);
    gst_query_parse_uri(query, &uri);
    printf("uri %d\n", !g_strcmp0(uri, url));
    g_free(uri);
    gst_query_unref(query);
    end(source, pad);
}

static void error(const char *url) {
    Bytes bytes = {0};
    GstElement *pipeline = reader(url, &bytes);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    GstMessage *message = wait_for(pipeline, GST_MESSAGE_ERROR | GST_MESSAGE_EOS, 60);
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_EOS) {
        printf("end %zu\n", bytes.count);
    } else {
        GError *problem = NULL;
        const GstStructure *details = NULL;
        guint status = 0;
        gst_message_parse_error(message, &problem, NULL);
        gst_message_parse_error_details(message, &details);
        if (details) gst_structure_get_uint(details, "http-status-code", &status);
        printf("%s %d %u\n", g_quark_to_string(problem->domain), problem->code, status);
        g_error_free(problem);
    }
    gst_message_unref(message);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(pipeline);
    g_checksum_free(bytes.digest);
}

static void fields(const char *url) {
    Bytes bytes = {0};
    GstElement *pipeline = reader(url, &bytes);
    GstElement *source = gst_bin_get_by_name(GST_BIN(pipeline), "source");
    const gchar *cookies[] = {"a=1", "b=2", NULL};
    GstStructure *extra = gst_structure_from_string("extra-headers, Referer=(string)http://x/, X-Number=(int)7;", NULL);
    g_object_set(source, "user-agent", "Agent/1", "cookies", cookies, "extra-headers", extra, NULL);
    gst_structure_free(extra);
    GstContext *context = gst_context_new("http-headers", FALSE);
    gst_structure_set(gst_context_writable_structure(context), "X-Context", G_TYPE_STRING, "yes", NULL);
    gst_element_set_context(source, context);
    gst_context_unref(context);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    GstMessage *message = wait_for(pipeline, GST_MESSAGE_ELEMENT | GST_MESSAGE_EOS, 60);
    gchar *text = gst_structure_to_string(gst_message_get_structure(message));
    printf("%s\n", text);
    g_free(text);
    gst_message_unref(message);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(source);
    gst_object_unref(pipeline);
    g_checksum_free(bytes.digest);
}

static void hold(const char *url) {
    Bytes bytes = {0};
    GstElement *pipeline = reader(url, &bytes);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    gst_message_unref(wait_for(pipeline, GST_MESSAGE_EOS, 60));
    printf("holds\n");
    fflush(stdout);
    (void)getchar();
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(pipeline);
    g_checksum_free(bytes.digest);
}

/* Half of them end before the source has said anything. */
static void cycles(const char *url, int count) {
    Bytes bytes = {0};
    GstElement *pipeline = reader(url, &bytes);
    for (int i = 0; i < count; i++) {
        gst_element_set_state(pipeline, i % 3 ? GST_STATE_PLAYING : GST_STATE_PAUSED);
        if (i % 2) gst_element_get_state(pipeline, NULL, NULL, GST_CLOCK_TIME_NONE);
        gst_element_set_state(pipeline, i % 5 ? GST_STATE_NULL : GST_STATE_READY);
    }
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(pipeline);
    g_checksum_free(bytes.digest);
    printf("cycles %d\n", count);
}

typedef struct {
    const char *url;
    const guint8 *file;
    gsize size;
    int seeks, number;
    gint wrong;
    const char *trouble;
} Storm;

static void compare(GstElement *sink, GstBuffer *buffer, GstPad *pad, gpointer data) {
    (void)sink, (void)pad;
    Storm *storm = data;
    guint64 offset = GST_BUFFER_OFFSET(buffer);
    gsize size = gst_buffer_get_size(buffer);
    if (offset > storm->size || size > storm->size - offset || gst_buffer_memcmp(buffer, 0, storm->file + offset, size))
        g_atomic_int_inc(&storm->wrong);
}

/* The last seek leads to the last 64 KiB, which come. */
static gpointer in_storm(gpointer data) {
    Storm *storm = data;
    Bytes bytes = {0};
    GstElement *pipeline = reader(storm->url, &bytes);
    GstElement *sink = gst_bin_get_by_name(GST_BIN(pipeline), "sink");
    g_signal_connect(sink, "handoff", G_CALLBACK(compare), storm);
    gst_object_unref(sink);
    GRand *random = g_rand_new_with_seed(storm->number);
    GstBus *bus = gst_element_get_bus(pipeline);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    gst_element_get_state(pipeline, NULL, NULL, GST_CLOCK_TIME_NONE);
    for (int i = 0; i <= storm->seeks && !storm->trouble; i++) {
        gint64 place = i < storm->seeks ? g_rand_int_range(random, 0, storm->size) : (gint64)storm->size - 65536;
        if (!gst_element_seek_simple(pipeline, GST_FORMAT_BYTES, GST_SEEK_FLAG_FLUSH, place)) storm->trouble = "a seek";
        if (g_rand_boolean(random)) g_usleep(g_rand_int_range(random, 0, 20000));
    }
    GstMessage *message = gst_bus_timed_pop_filtered(bus, storm->trouble ? 0 : 20 * GST_SECOND,
                                                     GST_MESSAGE_ERROR | GST_MESSAGE_EOS);
    if (!storm->trouble && !message) storm->trouble = "the end";
    if (message && GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) storm->trouble = "an error";
    if (message) gst_message_unref(message);
    gst_object_unref(bus);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(pipeline);
    g_checksum_free(bytes.digest);
    g_rand_free(random);
    return NULL;
}

static void storm(const char *url, const char *path, int seeks) {
    gchar *file = NULL;
    gsize size = 0;
    if (!g_file_get_contents(path, &file, &size, NULL)) exit(1);
    Storm storms[8];
    GThread *threads[8];
    for (int i = 0; i < 8; i++) {
        storms[i] = (Storm){.url = url, .file = (guint8 *)file, .size = size, .seeks = seeks, .number = i};
        threads[i] = g_thread_new("storm", in_storm, &storms[i]);
    }
    int troubles = 0, wrong = 0;
    for (int i = 0; i < 8; i++) {
        g_thread_join(threads[i]);
        wrong += storms[i].wrong;
        if (storms[i].trouble) troubles++, fprintf(stderr, "host: pipeline %d: %s\n", i, storms[i].trouble);
    }
    printf("wrong %d troubles %d\n", wrong, troubles);
    g_free(file);
}

int main(int argc, char **argv) {
    gst_init(&argc, &argv);
    if (argc < 3) return fprintf(stderr, "usage: host COMMAND URL ...\n"), 64;
    const char *command = argv[1], *url = argv[2];
    if (!strcmp(command, "seeks")) seeks(url, argv + 3);
    else if (!strcmp(command, "stop")) stop(url);
    else if (!strcmp(command, "two")) two(url);
    else if (!strcmp(command, "held")) held(url);
    else if (!strcmp(command, "error")) error(url);
    else if (!strcmp(command, "fields")) fields(url);
    else if (!strcmp(command, "range") && argc > 4) range(url, strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
    else if (!strcmp(command, "hold")) hold(url);
    else if (!strcmp(command, "storm") && argc > 4) storm(url, argv[3], atoi(argv[4]));
    else if (!strcmp(command, "cycles") && argc > 3) cycles(url, atoi(argv[3]));
    else return fprintf(stderr, "host: no such command\n"), 64;
    gst_deinit();
    return 0;
}
