extension MediaCache.Configuration {
    /// The configured transport, or the built-in one, which asks the owner of the directory where
    /// another process owns it.
    ///
    /// - Parameters:
    ///   - threads: what may wait for the volume of the directory.
    ///   - owner: the process that owns the directory in place of this one now, if one does.
    ///   - stored: the response that the directory has for a request, if it has one.
    /// - Returns: the transport.
    /// - Throws: `.invalidArgument` if none is configured and the package was built without its
    ///   own.
    func makeTransport(
        threads: IOExecutor,
        owner: @escaping @Sendable () -> DirectoryOwner?,
        stored: @escaping @Sendable (TransportRequest) async -> TransportResponse?
    ) throws(CacheError) -> any Transport {
        if let transport { return transport }
        #if HTTPClient
        guard let path else { return NIOTransport() }
        return GuestTransport(
            directory: path,
            threads: threads,
            time: timeSource,
            owner: owner,
            stored: stored
        )
        #else
        throw CacheError(
            .invalidArgument,
            "this build has no HTTP client (package trait HTTPClient); set configuration.transport"
        )
        #endif
    }
}
