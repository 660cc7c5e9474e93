public import TieredCache

/// A picture that is wanted: the request for its bytes, and how large it is shown.
public struct ImageRequest: Sendable {
    /// What tells two pictures apart.
    struct Identity: Hashable, Sendable {
        let key: CacheKey
        let size: ImageSize?
    }

    /// The request for the bytes.
    public var bytes: CacheRequest
    /// How large the picture is shown; nil for its own size.
    public var size: ImageSize?

    /// Creates a request for a picture.
    ///
    /// - Parameters:
    ///   - bytes: the request for the bytes; create it once, because its initializer hashes the key.
    ///   - size: how large the picture is shown; nil for its own size.
    public init(_ bytes: CacheRequest, size: ImageSize? = nil) {
        self.bytes = bytes
        self.size = size
    }

    /// Creates a request for the picture of a URL.
    ///
    /// - Parameters:
    ///   - url: an absolute `http` or `https` URL.
    ///   - size: how large the picture is shown; nil for its own size.
    /// - Throws: `.invalidURL`.
    public init(_ url: String, size: ImageSize? = nil) throws(CacheError) {
        self.init(try CacheRequest(url), size: size)
    }

    var identity: Identity { Identity(key: bytes.key, size: size) }
}
