extension MediaCache.Configuration {
    /// The configured transport, or the built-in one.
    ///
    /// - Throws: `.invalidArgument` if none is configured and the package was built without its
    ///   own.
    func makeTransport() throws(CacheError) -> any Transport {
        if let transport { return transport }
        #if HTTPClient
        return AsyncHTTPClientTransport()
        #else
        throw CacheError(
            .invalidArgument,
            "this build has no HTTP client (package trait HTTPClient); set configuration.transport"
        )
        #endif
    }
}
