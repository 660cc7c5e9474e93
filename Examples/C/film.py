"""Reads a film from Python, with a seek: python3 film.py URL PLACE >bytes. No compiler is needed."""
import ctypes as c
import sys


class Request(c.Structure):
    _fields_ = [("size", c.c_size_t), ("url", c.c_char_p), ("key", c.c_char_p), ("fields", c.c_void_p),
                ("flags", c.c_uint32), ("deadline_ms", c.c_int32), ("read_ahead", c.c_int64)]


lib = c.CDLL("libtieredcache.so.0")
lib.tiered_seek.argtypes, lib.tiered_seek.restype = [c.c_void_p, c.c_int64, c.c_int], c.c_int64
lib.tiered_read.argtypes, lib.tiered_read.restype = [c.c_void_p, c.c_void_p, c.c_size_t], c.c_int64
cache, stream, buffer = c.c_void_p(), c.c_void_p(), c.create_string_buffer(65536)
request = Request(c.sizeof(Request), sys.argv[1].encode())
assert lib.tiered_abi() == lib.tiered_cache_open(None, c.byref(cache)) == 0
assert lib.tiered_stream_new(cache, c.byref(request), c.byref(stream)) == 0
assert lib.tiered_seek(stream, int(sys.argv[2]), 0) >= 0
while (n := lib.tiered_read(stream, buffer, len(buffer))) > 0:
    sys.stdout.buffer.write(buffer.raw[:n])
lib.tiered_stream_release(stream)
lib.tiered_cache_release(cache)
sys.exit(n and f"status {n}")
