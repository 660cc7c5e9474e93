/// Pictures by libjpeg-turbo and libpng: their errors are jumps, which Swift cannot catch.
#ifndef C_PICTURES_H
#define C_PICTURES_H

#include <stddef.h>
#include <stdint.h>

/// A bitmap of three bytes a pixel, red first, row after row without a gap.
typedef struct {
  int width, height;
  uint8_t *_Nullable pixels; // of malloc(3)
} Bitmap;

/// The largest number of pixels that is decoded.
enum { MAXIMUM_PIXELS = 64000000 };

/// Reads the size of a JPEG or PNG without its pixels. Returns 0, or -1 for what is neither.
int bitmap_measure(const uint8_t *_Nonnull bytes, size_t count, int *_Nonnull width, int *_Nonnull height);

/// Decodes a JPEG or PNG and reduces it to a size. JPEGs are decoded at the next larger eighth of their own size,
/// which costs a fraction. Returns 0, or -1 for what is neither, or is broken.
int bitmap_decode(const uint8_t *_Nonnull bytes, size_t count, int width, int height, Bitmap *_Nonnull bitmap);

/// Writes a PNG. Returns 0, or -1 where the file cannot be written.
int bitmap_write(const Bitmap *_Nonnull bitmap, const char *_Nonnull path);

#endif
