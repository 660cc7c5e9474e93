extension MediaCache.Configuration {
    /// The configured transport, or the built-in one, which asks the owner of the directory where
    /// another process owns it.
    ///
    /// - Parameter isGuest: whether another process owns the directory now.
    /// - Returns: the transport.
    /// - Throws: `.invalidArgument` if none is configured and the package was built without its
    ///   own.
    func makeTransport(
        isGuest: @escaping @Sendable () -> Bool
    ) throws(CacheError) -> any Transport {
        if let transport { return transport }
        #if HTTPClient
        guard let path else { return NIOTransport() }
        return GuestTransport(directory: path, time: timeSource, isGuest: isGuest)
        #else
        throw CacheError(
            .invalidArgument,
            "this build has no HTTP client (package trait HTTPClient); set configuration.transport"
        )
        #endif
    }
}
