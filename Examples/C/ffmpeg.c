/* Demuxes and decodes URL with FFmpeg's libraries, and prints an MD5 of each frame, as `ffmpeg -f framemd5`.
 *
 *   cc ffmpeg.c $(pkg-config --cflags --libs tieredcache libavformat libavcodec libavutil) -o frames
 *   ./frames http://127.0.0.1:8000/film.mp4
 *
 * HLS and DASH open their segments past such a callback: give those tiered_proxy_url instead. */
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/imgutils.h>
#include <libavutil/md5.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <tieredcache.h>

static int av_status(int64_t status) {
    switch (status) {
    case TIERED_E_CANCELLED:
    case TIERED_E_INTERRUPTED: return AVERROR_EXIT;
    case TIERED_E_TIMEOUT: return AVERROR(ETIMEDOUT);
    case TIERED_E_UNKNOWN: return AVERROR(ENOSYS);
    case TIERED_E_INVALID: return AVERROR(EINVAL);
    default: return AVERROR(EIO);
    }
}

static int read_packet(void *stream, uint8_t *buffer, int count) {
    int64_t n = tiered_read(stream, buffer, count);
    return n > 0 ? (int)n : n == 0 ? AVERROR_EOF : av_status(n);
}

/* tiered_seek knows AVSEEK_SIZE and AVSEEK_FORCE. */
static int64_t seek(void *stream, int64_t offset, int whence) {
    int64_t place = tiered_seek(stream, offset, whence);
    return place < 0 ? av_status(place) : place;
}

/* FFmpeg does not ask its interrupt callback around custom I/O: quitting is tiered_cancel. */
static void *cancel_on_signal(void *stream) {
    sigset_t quit;
    int number;
    sigemptyset(&quit);
    sigaddset(&quit, SIGINT);
    sigaddset(&quit, SIGTERM);
    sigwait(&quit, &number);
    tiered_cancel(stream);
    return NULL;
}

static void print_frame(int index, const AVFrame *frame) {
    int size = frame->width ? av_image_get_buffer_size(frame->format, frame->width, frame->height, 1)
                            : av_samples_get_buffer_size(NULL, frame->ch_layout.nb_channels,
                                                         frame->nb_samples, frame->format, 1);
    uint8_t *bytes = malloc(size), digest[16];
    if (frame->width) {
        av_image_copy_to_buffer(bytes, size, (const uint8_t *const *)frame->data, frame->linesize,
                                frame->format, frame->width, frame->height, 1);
    } else { /* plane after plane, where there is one for each channel */
        int planes = av_sample_fmt_is_planar(frame->format) ? frame->ch_layout.nb_channels : 1;
        for (int i = 0; i < planes; i++)
            memcpy(bytes + i * (size / planes), frame->extended_data[i], size / planes);
    }
    av_md5_sum(digest, bytes, size);
    free(bytes);
    printf("%d, %d, ", index, size);
    for (int i = 0; i < 16; i++) printf("%02x", digest[i]);
    printf("\n");
}

static void decode(AVCodecContext *decoder, int index, const AVPacket *packet, AVFrame *frame) {
    if (avcodec_send_packet(decoder, packet) < 0) return;
    while (avcodec_receive_frame(decoder, frame) >= 0) print_frame(index, frame);
}

int main(int argc, char **argv) {
    if (argc != 2) return fprintf(stderr, "usage: %s URL\n", argv[0]), 64;
    sigset_t quit;
    sigemptyset(&quit);
    sigaddset(&quit, SIGINT);
    sigaddset(&quit, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &quit, NULL);

    tiered_cache *cache;
    tiered_stream *stream;
    tiered_request request = {.size = sizeof request, .url = argv[1]};
    if (tiered_abi() != TIERED_ABI || tiered_cache_open(NULL, &cache) != TIERED_OK) return 1;
    if (tiered_stream_new(cache, &request, &stream) != TIERED_OK) return 1;
    pthread_t waiting;
    pthread_create(&waiting, NULL, cancel_on_signal, stream);

    AVFormatContext *film = avformat_alloc_context();
    film->pb = avio_alloc_context(av_malloc(65536), 65536, 0, stream, read_packet, NULL, seek);
    film->flags |= AVFMT_FLAG_CUSTOM_IO;
    int status = tiered_stream_prepare(stream) == TIERED_OK ? 0 : AVERROR(EIO);
    film->pb->seekable = tiered_is_seekable(stream) ? AVIO_SEEKABLE_NORMAL : 0;
    AVIOContext *io = film->pb; /* the film is freed where opening fails */
    AVCodecContext *decoders[16] = {0};
    if (status == 0) status = avformat_open_input(&film, NULL, NULL, NULL);
    if (status == 0) status = avformat_find_stream_info(film, NULL);
    for (unsigned i = 0; status >= 0 && i < film->nb_streams && i < 16; i++) {
        const AVCodec *codec = avcodec_find_decoder(film->streams[i]->codecpar->codec_id);
        if (!codec) continue;
        decoders[i] = avcodec_alloc_context3(codec);
        avcodec_parameters_to_context(decoders[i], film->streams[i]->codecpar);
        decoders[i]->pkt_timebase = film->streams[i]->time_base;
        if (avcodec_open2(decoders[i], codec, NULL) < 0) avcodec_free_context(&decoders[i]);
    }
    AVPacket *packet = av_packet_alloc();
    AVFrame *frame = av_frame_alloc();
    while (status >= 0 && (status = av_read_frame(film, packet)) >= 0) {
        int index = packet->stream_index;
        if (index < 16 && decoders[index]) decode(decoders[index], index, packet, frame);
        av_packet_unref(packet);
    }
    for (int i = 0; i < 16; i++) {
        if (decoders[i] && status == AVERROR_EOF) decode(decoders[i], i, NULL, frame);
        avcodec_free_context(&decoders[i]);
    }
    char text[256];
    if (tiered_stream_error(stream, text, sizeof text) != TIERED_OK)
        fprintf(stderr, "ffmpeg: %s\n", text);
    av_frame_free(&frame);
    av_packet_free(&packet);
    avformat_close_input(&film);
    av_freep(&io->buffer);
    avio_context_free(&io);
    tiered_stream_release(stream); /* a late tiered_cancel finds a handle that is gone, and does nothing */
    tiered_cache_release(cache);
    return status == AVERROR_EOF ? 0 : 1;
}
