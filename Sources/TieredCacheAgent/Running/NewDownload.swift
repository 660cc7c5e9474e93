import HTTPCaching
import TieredCache

/// What `addUri` asks for, checked.
struct NewDownload: Sendable {
    /// The longest URL.
    private static let maximumLength = 16 << 10
    /// The most URLs of one file, and their most bytes together: a record in the journal is
    /// shorter than a mebibyte.
    private static let maximumCount = 64
    private static let maximumSum = 256 << 10

    /// Without userinfo.
    let uris: [String]
    let options: DownloadOptions
    private let wantedGID: GID?

    /// - Parameters:
    ///   - given: the URLs.
    ///   - members: the options.
    ///   - session: the session that the client is attached to.
    /// - Throws: ``RPCError`` in aria2's words.
    init(
        uris given: [String],
        options members: [String: JSONValue],
        session: String?
    ) throws(RPCError) {
        var options = DownloadOptions()
        try options.take(members)
        if let session {
            guard options["session"] ?? session == session else { throw .option("session") }
            options.set("session", to: session)
        }
        try Self.check(given)
        var uris: [String] = []
        for uri in given {
            // aria2 leaves out what it cannot use, too.
            guard let target = Self.target(uri) else { continue }
            uris.append(target.withoutUserinfo.string)
            if let userinfo = target.userinfo { options.take(userinfo: userinfo) }
        }
        guard !uris.isEmpty else { throw RPCError("No URI to download.") }
        self.uris = uris
        if let text = options["gid"] {
            guard let gid = GID(text.lowercased()), gid.number != 0 else {
                throw RPCError("No URI to download.")
            }
            wantedGID = gid
        } else {
            wantedGID = nil
        }
        self.options = options
    }

    /// - Throws: ``RPCError`` where these are too many for one download.
    static func check(_ uris: [String]) throws(RPCError) {
        let sum = uris.reduce(0) { $0 + $1.utf8.count }
        guard uris.count <= maximumCount, sum <= maximumSum else {
            throw RPCError(
                "A download has at most \(maximumCount) URIs, of \(maximumSum) bytes together."
            )
        }
    }

    /// What a usable URL asks for.
    static func target(_ uri: String) -> TargetURI? {
        guard uri.utf8.count <= maximumLength else { return nil }
        do {
            return try TargetURI(uri)
        } catch {
            return nil
        }
    }

    /// The identifier: the one that was asked for, or a new one.
    ///
    /// - Throws: ``RPCError`` where it is taken.
    func gid(in table: DownloadTable) throws(RPCError) -> GID {
        if let wantedGID {
            guard !table.contains(wantedGID) else {
                throw RPCError("GID#\(wantedGID) is taken by another download.")
            }
            return wantedGID
        }
        while true {
            let gid = GID(number: .random(in: 1 ... .max))
            if !table.contains(gid) { return gid }
        }
    }
}
