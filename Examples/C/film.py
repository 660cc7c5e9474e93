"""Reads a film from Python, with a seek: python3 film.py URL PLACE >bytes. No compiler is needed."""
import ctypes
import sys


class Request(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("url", ctypes.c_char_p), ("key", ctypes.c_char_p),
                ("fields", ctypes.POINTER(ctypes.c_char_p)), ("flags", ctypes.c_uint32),
                ("deadline_ms", ctypes.c_int32), ("read_ahead", ctypes.c_int64)]


lib = ctypes.CDLL("libtieredcache.so.0")
lib.tiered_seek.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int]
lib.tiered_seek.restype = lib.tiered_read.restype = ctypes.c_int64
lib.tiered_read.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
lib.tiered_stream_release.argtypes = lib.tiered_cache_release.argtypes = [ctypes.c_void_p]
cache, stream, buffer = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.create_string_buffer(65536)
request = Request(ctypes.sizeof(Request), sys.argv[1].encode())
assert lib.tiered_abi() == 0 and lib.tiered_cache_open(None, ctypes.byref(cache)) == 0
assert lib.tiered_stream_new(cache, ctypes.byref(request), ctypes.byref(stream)) == 0
assert lib.tiered_seek(stream, int(sys.argv[2]), 0) == int(sys.argv[2])
while (n := lib.tiered_read(stream, buffer, len(buffer))) > 0:
    sys.stdout.buffer.write(buffer.raw[:n])
lib.tiered_stream_release(stream)
lib.tiered_cache_release(cache)
sys.exit(f"status {n}" if n < 0 else 0)
