public import HTTPTypes

/// The bytes that a prefetch has fetched and found.
public struct PrefetchResult: Sendable {
    /// The final status.
    public let status: HTTPResponse.Status
    /// The source of the bytes; ``ResponseSource/origin`` if any was fetched.
    public private(set) var source: ResponseSource
    /// The number of bytes stored before.
    public private(set) var bytesFromCache: Int64 = 0
    /// The number of bytes fetched and stored.
    public private(set) var bytesFromOrigin: Int64 = 0

    init(_ response: CacheResponse) {
        status = response.status
        source = response.source
    }

    /// Adopts the counts of a body that has been read.
    mutating func finish(_ response: CacheResponse) {
        source = response.source
        bytesFromCache = response.bytesFromCache
        bytesFromOrigin = response.bytesFromOrigin
    }

    /// Adds a further part, including bytes read only to find box headers.
    mutating func add(_ response: CacheResponse) {
        bytesFromCache += response.bytesFromCache
        bytesFromOrigin += response.bytesFromOrigin
        if bytesFromOrigin > 0 { source = .origin }
    }
}
