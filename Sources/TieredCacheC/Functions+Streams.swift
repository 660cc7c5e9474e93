import CLinuxCalls
public import CTieredCache
import Glibc
import HTTPTypes
import TieredCache

@c @implementation
public func tiered_stream_new(
    _ cache: OpaquePointer!,
    _ request: UnsafePointer<tiered_request>!,
    _ stream: UnsafeMutablePointer<OpaquePointer?>!
) -> CInt {
    status { () throws(Status) in
        let hosted = try hostedCache(cache)
        try give(to: stream, of: streams) { () throws(Status) in
            let wanted = try HostedRequest(request, priority: .playing, by: hosted.proxy)
            return try HostedStream(wanted.request, options: wanted.options, of: hosted)
        }
    }
}

@c @implementation
public func tiered_stream_retain(_ stream: OpaquePointer!) -> OpaquePointer! {
    streams?.retain(stream)
}

@c @implementation
public func tiered_stream_release(_ stream: OpaquePointer!) { streams?.release(stream)?.close() }

// MARK: Reading

@c @implementation
public func tiered_stream_prepare(_ stream: OpaquePointer!) -> CInt {
    status { () throws(Status) in
        let reader = try object(streams, stream).reader
        try translating { () throws(CacheError) in try reader.open() }
    }
}

/// The most bytes of one call.
private let maximumCount = 1 << 30

/// A read into the memory of a program.
@inline(__always)
private func reading(
    _ stream: OpaquePointer?,
    _ buffer: UnsafeMutableRawPointer?,
    _ count: Int,
    atMost maximum: Int = maximumCount,
    at offset: Int64 = 0,
    _ read: (BlockingReader, UnsafeMutableRawBufferPointer) throws(CacheError) -> Int?
) -> Int64 {
    number { () throws(Status) in
        let reader = try object(streams, stream).reader
        // Counts beyond PTRDIFF_MAX are negative here.
        guard let buffer, count > 0, offset >= 0 else { throw .invalid }
        let memory = UnsafeMutableRawBufferPointer(start: buffer, count: min(count, maximum))
        let got = try translating { () throws(CacheError) in try read(reader, memory) }
        guard let got else { throw Status(TIERED_E_AGAIN) }
        return Int64(got)
    }
}

@c @implementation
public func tiered_read(
    _ stream: OpaquePointer!,
    _ buffer: UnsafeMutableRawPointer!,
    _ count: Int
) -> Int64 {
    reading(stream, buffer, count) { (reader, memory) throws(CacheError) in
        try reader.unsafeRead(into: memory)
    }
}

@c @implementation
public func tiered_read_at(
    _ stream: OpaquePointer!,
    _ offset: Int64,
    _ buffer: UnsafeMutableRawPointer!,
    _ count: Int
) -> Int64 {
    reading(stream, buffer, count, at: offset) { (reader, memory) throws(CacheError) in
        try reader.unsafeRead(at: offset, into: memory)
    }
}

@c @implementation
public func tiered_read_full_at(
    _ stream: OpaquePointer!,
    _ offset: Int64,
    _ buffer: UnsafeMutableRawPointer!,
    _ count: Int
) -> Int64 {
    reading(stream, buffer, count, atMost: .max, at: offset) {
        (reader, memory) throws(CacheError) in
        try reader.unsafeReadFully(at: offset, into: memory)
    }
}

@c @implementation
public func tiered_try_read(
    _ stream: OpaquePointer!,
    _ buffer: UnsafeMutableRawPointer!,
    _ count: Int
) -> Int64 {
    reading(stream, buffer, count) { (reader, memory) throws(CacheError) in
        try reader.unsafeTryRead(into: memory)
    }
}

@c @implementation
public func tiered_stream_fd(_ stream: OpaquePointer!) -> CInt {
    CInt(
        number { () throws(Status) in
            let reader = try object(streams, stream).reader
            return try translating { () throws(CacheError) in
                Int64(try reader.readinessDescriptor())
            }
        }
    )
}

// MARK: Moving

/// AVSEEK_FORCE of FFmpeg.
private let seekForce: CInt = 0x20000

@c @implementation
public func tiered_seek(_ stream: OpaquePointer!, _ offset: Int64, _ whence: CInt) -> Int64 {
    number { () throws(Status) in
        let reader = try object(streams, stream).reader
        let start: Int64
        switch whence & ~seekForce {
        case CInt(TIERED_SEEK_SIZE): return try size(of: reader)
        case SEEK_SET: start = 0
        case SEEK_CUR: start = reader.position
        case SEEK_END: start = try size(of: reader)
        default: throw .invalid
        }
        let (place, overflow) = start.addingReportingOverflow(offset)
        guard !overflow else { throw .invalid }
        try translating { () throws(CacheError) in try reader.seek(to: place) }
        return place
    }
}

private func size(of reader: BlockingReader) throws(Status) -> Int64 {
    guard let size = reader.size else { throw .unknown }
    return size
}

@c @implementation
public func tiered_size(_ stream: OpaquePointer!) -> Int64 {
    number { () throws(Status) in try size(of: object(streams, stream).reader) }
}

@c @implementation
public func tiered_is_seekable(_ stream: OpaquePointer!) -> Bool {
    streams?.find(stream)?.reader.isSeekable ?? false
}

// MARK: Stopping

@c @implementation
public func tiered_cancel(_ stream: OpaquePointer!) { streams?.find(stream)?.reader.cancel() }

@c @implementation
public func tiered_interrupt(_ stream: OpaquePointer!) { streams?.find(stream)?.reader.interrupt() }

@c @implementation
public func tiered_resume(_ stream: OpaquePointer!) { streams?.find(stream)?.reader.resume() }

// MARK: What is known

@c @implementation
public func tiered_stream_error(
    _ stream: OpaquePointer!,
    _ buffer: UnsafeMutablePointer<CChar>!,
    _ count: Int
) -> CInt {
    status { () throws(Status) in
        let error = try object(streams, stream).reader.lastError
        try write(error?.description ?? "", to: buffer, count: count)
        if let error { throw Status(error) }
    }
}

@c @implementation
public func tiered_stream_http_status(_ stream: OpaquePointer!) -> CInt {
    CInt(
        number { () throws(Status) in
            let reader = try object(streams, stream).reader
            guard let status = reader.reader?.status.code ?? reader.lastError?.status else {
                throw .unknown
            }
            return Int64(status)
        }
    )
}

@c @implementation
public func tiered_stream_field(
    _ stream: OpaquePointer!,
    _ name: UnsafePointer<CChar>!,
    _ buffer: UnsafeMutablePointer<CChar>!,
    _ count: Int
) -> Int64 {
    number { () throws(Status) in
        let reader = try object(streams, stream).reader
        guard let name = HTTPField.Name(try text(name)) else { throw .invalid }
        guard let fields = reader.reader?.fields else { throw .unknown }
        guard fields.contains(name) else { throw .notFound }
        let value = fields[values: name].joined(separator: ", ")
        return try write(value, to: buffer, count: count)
    }
}

@c @implementation
public func tiered_stream_stored(
    _ stream: OpaquePointer!,
    _ bounds: UnsafeMutablePointer<Int64>!,
    _ pairs: Int
) -> Int64 {
    number { () throws(Status) in
        let reader = try object(streams, stream).reader
        guard pairs >= 0, bounds != nil || pairs == 0 else { throw .invalid }
        let ranges = reader.storedRanges
        for (index, range) in ranges.prefix(pairs).enumerated() {
            bounds?[2 * index] = range.lowerBound
            bounds?[2 * index + 1] = range.upperBound
        }
        return Int64(ranges.count)
    }
}
