#!/usr/bin/env python3
"""Moves the chunks of a film that ffmpeg has written as mdat and moov: its streams then lie one behind the other
instead of side by side, so that a player of it jumps to and fro all the time.

    scatter.py FILM RESULT
"""
import struct
import sys


def boxes(film, begin, end):
    while begin < end:
        size, kind = struct.unpack_from(">I4s", film, begin)
        yield kind, begin + 8, begin + size
        begin += size


def find(film, begin, end, *kinds):
    for kind in kinds:
        begin, end = next((a, b) for name, a, b in boxes(film, begin, end) if name == kind)
    return begin, end


def number(film, place):
    return struct.unpack_from(">I", film, place)[0]


def chunk_sizes(film, chunks, samples):
    fixed, count = number(film, samples + 4), number(film, samples + 8)
    runs = [(number(film, chunks + 8 + 12 * i), number(film, chunks + 12 + 12 * i))
            for i in range(number(film, chunks + 4))]
    sample = chunk = 0
    while sample < count:
        chunk += 1
        last = min(count, sample + [length for first, length in runs if first <= chunk][-1])
        yield sum(fixed or number(film, samples + 12 + 4 * i) for i in range(sample, last))
        sample = last


with open(sys.argv[1], "rb") as file:
    film = file.read()
result = bytearray(film)
place = find(film, 0, len(film), b"mdat")[0]
movie = find(film, 0, len(film), b"moov")
for kind, begin, end in boxes(film, *movie):
    if kind != b"trak":
        continue
    tables = find(film, begin, end, b"mdia", b"minf", b"stbl")
    offsets, chunks, samples = (find(film, *tables, name)[0] for name in (b"stco", b"stsc", b"stsz"))
    for index, size in enumerate(chunk_sizes(film, chunks, samples)):
        entry = offsets + 8 + 4 * index
        old = number(film, entry)
        result[place:place + size] = film[old:old + size]
        struct.pack_into(">I", result, entry, place)
        place += size
with open(sys.argv[2], "wb") as file:
    file.write(result)
