/* What the library for C costs, beside what a program would do with a plain file.
 *
 *   library URL FILE [--json FILE] [--strict]      URL brings the bytes of FILE, 32 MiB
 *
 * - a read of 64 KiB of a stored film, warm on both sides, beside pread of the plain file;
 * - from tiered_stream_new of a stored film to its first byte, beside open and read of the plain file;
 * - the memory of a hundred streams that were opened and wait.
 *
 * Each round runs both contenders, in an order that turns; the ratio is taken within the round, and its median
 * over the rounds counts. --strict: ends with 1 where a target is missed. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tieredcache.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 101, READS = 200, OPENS = 20, STREAMS = 100, COUNT = 65536 };
static const char *url, *plain, *json;
static int64_t size;
static int missed;
static char bytes[COUNT];

static void expect(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "library: %s\n", what);
    exit(1);
}

static double nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *values, int count) {
    qsort(values, count, sizeof *values, ascending);
    return values[count / 2];
}

static void report(const char *row, const char *peer, double ratio, double most, const char *figures) {
    printf("%-48s %-32s %6.2f   at most %.2f   %s\n", row, peer, ratio, most, figures);
    if (ratio > most) missed = 1;
    FILE *file = json ? fopen(json, "a") : NULL;
    if (!file) return;
    fprintf(file, "{\"row\":\"%s\",\"peer\":\"%s\",\"ratio\":%.4f,\"atMost\":%.2f}\n", row, peer, ratio, most);
    fclose(file);
}

static tiered_stream *new_stream(tiered_cache *cache) {
    tiered_request request = {.size = sizeof request, .url = url, .flags = TIERED_CACHE_ONLY};
    tiered_stream *stream;
    expect(tiered_stream_new(cache, &request, &stream) == TIERED_OK, "no stream");
    return stream;
}

/* ---- Reads ---- */

static int64_t place(int round, int i) { /* the same for both, and in no order */
    return (round * 7919 + i * 104729) % (size / COUNT) * COUNT;
}

static double read_stream(tiered_stream *stream, int round) {
    double begin = nanoseconds();
    for (int i = 0; i < READS; i++)
        expect(tiered_read_at(stream, place(round, i), bytes, COUNT) == COUNT, "a short read");
    return (nanoseconds() - begin) / READS;
}

static double read_plain(int file, int round) {
    double begin = nanoseconds();
    for (int i = 0; i < READS; i++)
        expect(pread(file, bytes, COUNT, place(round, i)) == COUNT, "a short pread");
    return (nanoseconds() - begin) / READS;
}

static void reads(tiered_cache *cache) {
    double ours[ROUNDS], theirs[ROUNDS], ratios[ROUNDS];
    tiered_stream *stream = new_stream(cache);
    int file = open(plain, O_RDONLY | O_CLOEXEC);
    read_stream(stream, 0);
    read_plain(file, 0);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 2) theirs[round] = read_plain(file, round);
        ours[round] = read_stream(stream, round);
        if (round % 2 == 0) theirs[round] = read_plain(file, round);
        ratios[round] = ours[round] / theirs[round];
    }
    close(file);
    tiered_stream_release(stream);
    char figures[64];
    snprintf(figures, sizeof figures, "%.1f us, %.1f us", median(ours, ROUNDS) / 1e3, median(theirs, ROUNDS) / 1e3);
    report("C: tiered_read_at of 64 KiB, stored", "pread of a plain file", median(ratios, ROUNDS), 1.1, figures);
}

/* ---- Opening ---- */

static void opens(tiered_cache *cache) {
    double ours[ROUNDS], theirs[ROUNDS];
    for (int round = -10; round < ROUNDS; round++) {
        double taken = 0, begin;
        for (int i = 0; i < OPENS; i++) {
            begin = nanoseconds();
            tiered_stream *stream = new_stream(cache);
            expect(tiered_read(stream, bytes, 1) == 1, "no first byte");
            taken += nanoseconds() - begin;
            tiered_stream_release(stream);
        }
        begin = nanoseconds();
        for (int i = 0; i < OPENS; i++) {
            int file = open(plain, O_RDONLY | O_CLOEXEC);
            expect(pread(file, bytes, 1, 0) == 1, "no first byte of the plain file");
            close(file);
        }
        if (round < 0) continue;
        ours[round] = taken / OPENS;
        theirs[round] = (nanoseconds() - begin) / OPENS;
    }
    char figures[96];
    double ours_median = median(ours, ROUNDS);
    snprintf(figures, sizeof figures, "%.1f us; a plain file: %.1f us", ours_median / 1e3, median(theirs, ROUNDS) / 1e3);
    report("C: open of a stored film to its first byte", "50 us", ours_median / 50e3, 1, figures);
}

/* ---- Memory ---- */

static double private_bytes(void) {
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    long kibibytes = 0, all = 0;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Private_Dirty: %ld", &kibibytes) == 1 || sscanf(line, "Private_Clean: %ld", &kibibytes) == 1)
            all += kibibytes;
    if (file) fclose(file);
    return all * 1024.0;
}

static void idle(tiered_cache *cache) {
    double each[5];
    for (int round = -1; round < 5; round++) {
        tiered_stream *streams[STREAMS];
        double before = private_bytes();
        for (int i = 0; i < STREAMS; i++) {
            streams[i] = new_stream(cache);
            expect(tiered_read_at(streams[i], place(0, i), bytes, COUNT) == COUNT, "a short read");
            expect(tiered_stream_fd(streams[i]) >= 0, "no descriptor");
        }
        if (round >= 0) each[round] = (private_bytes() - before) / STREAMS;
        /* Those of the other rounds stay: their memory serves no later stream. */
        if (round < 4) continue;
        for (int i = 0; i < STREAMS; i++) tiered_stream_release(streams[i]);
    }
    char figures[64];
    double bytes_each = median(each, 5);
    snprintf(figures, sizeof figures, "%.0f bytes", bytes_each);
    report("C: an idle stream of a hundred", "16 KiB", bytes_each / 16384, 1, figures);
}

int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "usage: %s URL FILE [--json FILE] [--strict]\n", argv[0]), 64;
    url = argv[1];
    plain = argv[2];
    int is_strict = 0;
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "--strict") == 0) is_strict = 1;
        if (strcmp(argv[i], "--json") == 0 && i + 1 < argc) json = argv[++i];
    }
    tiered_cache *cache;
    tiered_stream *stream;
    tiered_request request = {.size = sizeof request, .url = url};
    expect(tiered_cache_open(NULL, &cache) == TIERED_OK, "no cache");
    expect(tiered_stream_new(cache, &request, &stream) == TIERED_OK, "no stream");
    int64_t n;
    while ((n = tiered_read(stream, bytes, COUNT)) > 0) size += n;
    expect(n == 0 && size > 16 * COUNT, "the film does not come");
    tiered_stream_release(stream);
    tiered_cache_release(cache); /* now it is on disk, and in no memory of ours */
    expect(tiered_cache_open(NULL, &cache) == TIERED_OK, "no cache");
    reads(cache);
    opens(cache);
    idle(cache);
    tiered_cache_release(cache);
    return is_strict && missed ? 1 : 0;
}
