public import HTTPTypes

/// What a prefetch brought and what was stored already.
public struct PrefetchResult: Sendable {
    /// The final status.
    public let status: HTTPResponse.Status
    /// Where the bytes came from; ``ResponseSource/origin`` if any had to be fetched.
    public private(set) var source: ResponseSource
    /// Bytes that were stored already.
    public private(set) var bytesFromCache: Int64 = 0
    /// Bytes that were fetched, so that they are stored now.
    public private(set) var bytesFromOrigin: Int64 = 0

    init(_ response: CacheResponse) {
        status = response.status
        source = response.source
    }

    /// Takes in the counts of a body that has been read.
    mutating func finish(_ response: CacheResponse) {
        source = response.source
        bytesFromCache = response.bytesFromCache
        bytesFromOrigin = response.bytesFromOrigin
    }

    /// Adds a further part; the bytes of box headers that were looked at count too.
    mutating func add(_ response: CacheResponse) {
        bytesFromCache += response.bytesFromCache
        bytesFromOrigin += response.bytesFromOrigin
        if bytesFromOrigin > 0 { source = .origin }
    }
}
