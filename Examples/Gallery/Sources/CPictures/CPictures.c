#include "CPictures.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

static bool is_size(int64_t width, int64_t height) {
  return width > 0 && height > 0 && width * height <= MAXIMUM_PIXELS;
}

// MARK: JPEG

typedef struct {
  struct jpeg_error_mgr base;
  jmp_buf leave;
} Errors;

static void leave(j_common_ptr info) { longjmp(((Errors *)info->err)->leave, 1); }
static void say_nothing(j_common_ptr info, int level) { (void)info, (void)level; }

static bool is_jpeg(const uint8_t *bytes, size_t count) {
  return count > 3 && bytes[0] == 0xFF && bytes[1] == 0xD8 && bytes[2] == 0xFF;
}

/// At its own size where no bitmap is wanted; else at the smallest that is not below the one that is wanted.
static int read_jpeg(const uint8_t *bytes, size_t count, int *width, int *height, Bitmap *bitmap) {
  struct jpeg_decompress_struct info;
  Errors errors;
  uint8_t *volatile pixels = NULL;
  info.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = leave;
  errors.base.emit_message = say_nothing;
  if (setjmp(errors.leave)) {
    jpeg_destroy_decompress(&info);
    free(pixels);
    return -1;
  }
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, bytes, count);
  (void)jpeg_read_header(&info, TRUE);
  if (!is_size(info.image_width, info.image_height))
    leave((j_common_ptr)&info);
  if (bitmap != NULL) {
    info.out_color_space = JCS_RGB;
    info.scale_denom = 8;
    for (info.scale_num = 1; info.scale_num < 8; info.scale_num++) {
      jpeg_calc_output_dimensions(&info);
      if ((int)info.output_width >= *width && (int)info.output_height >= *height)
        break;
    }
    (void)jpeg_start_decompress(&info);
    size_t stride = (size_t)info.output_width * 3;
    pixels = malloc(stride * info.output_height);
    if (pixels == NULL)
      leave((j_common_ptr)&info);
    while (info.output_scanline < info.output_height) {
      JSAMPROW row = pixels + stride * info.output_scanline;
      (void)jpeg_read_scanlines(&info, &row, 1);
    }
    *bitmap = (Bitmap){(int)info.output_width, (int)info.output_height, pixels};
    (void)jpeg_finish_decompress(&info);
  } else {
    *width = (int)info.image_width;
    *height = (int)info.image_height;
  }
  jpeg_destroy_decompress(&info);
  return 0;
}

// MARK: PNG

static int read_png(const uint8_t *bytes, size_t count, int *width, int *height, Bitmap *bitmap) {
  png_image image = {.version = PNG_IMAGE_VERSION};
  if (!png_image_begin_read_from_memory(&image, bytes, count))
    return -1;
  if (!is_size(image.width, image.height)) {
    png_image_free(&image);
    return -1;
  }
  if (bitmap == NULL) {
    *width = (int)image.width;
    *height = (int)image.height;
    png_image_free(&image);
    return 0;
  }
  image.format = PNG_FORMAT_RGB;
  uint8_t *pixels = malloc(PNG_IMAGE_SIZE(image));
  png_color white = {255, 255, 255};
  if (pixels == NULL || !png_image_finish_read(&image, &white, pixels, 0, NULL)) {
    png_image_free(&image);
    free(pixels);
    return -1;
  }
  *bitmap = (Bitmap){(int)image.width, (int)image.height, pixels};
  return 0;
}

int bitmap_write(const Bitmap *bitmap, const char *path) {
  png_image image = {
      .version = PNG_IMAGE_VERSION,
      .width = (png_uint_32)bitmap->width,
      .height = (png_uint_32)bitmap->height,
      .format = PNG_FORMAT_RGB,
  };
  return png_image_write_to_file(&image, path, 0, bitmap->pixels, 0, NULL) ? 0 : -1;
}

// MARK: Both

int bitmap_measure(const uint8_t *bytes, size_t count, int *width, int *height) {
  return is_jpeg(bytes, count) ? read_jpeg(bytes, count, width, height, NULL)
                               : read_png(bytes, count, width, height, NULL);
}

/// Each pixel is the mean of those that it covers.
static int reduce(Bitmap *bitmap, int width, int height) {
  if (bitmap->width == width && bitmap->height == height)
    return 0;
  if (bitmap->width < width || bitmap->height < height || !is_size(width, height))
    return -1;
  uint8_t *pixels = malloc((size_t)width * (size_t)height * 3);
  if (pixels == NULL)
    return -1;
  for (int y = 0; y < height; y++) {
    int top = (int)((int64_t)y * bitmap->height / height), bottom = (int)((int64_t)(y + 1) * bitmap->height / height);
    for (int x = 0; x < width; x++) {
      int left = (int)((int64_t)x * bitmap->width / width), right = (int)((int64_t)(x + 1) * bitmap->width / width);
      uint64_t sums[3] = {0, 0, 0};
      for (int row = top; row < bottom; row++) {
        const uint8_t *pixel = bitmap->pixels + ((size_t)row * (size_t)bitmap->width + (size_t)left) * 3;
        for (int column = left; column < right; column++, pixel += 3)
          for (int color = 0; color < 3; color++)
            sums[color] += pixel[color];
      }
      uint64_t covered = (uint64_t)(bottom - top) * (uint64_t)(right - left);
      for (int color = 0; color < 3; color++)
        pixels[((size_t)y * (size_t)width + (size_t)x) * 3 + (size_t)color] = (uint8_t)(sums[color] / covered);
    }
  }
  free(bitmap->pixels);
  *bitmap = (Bitmap){width, height, pixels};
  return 0;
}

int bitmap_decode(const uint8_t *bytes, size_t count, int width, int height, Bitmap *bitmap) {
  int result = is_jpeg(bytes, count) ? read_jpeg(bytes, count, &width, &height, bitmap)
                                     : read_png(bytes, count, &width, &height, bitmap);
  if (result == 0 && reduce(bitmap, width, height) != 0) {
    free(bitmap->pixels);
    bitmap->pixels = NULL;
    return -1;
  }
  return result;
}
