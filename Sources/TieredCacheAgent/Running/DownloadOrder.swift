import FoundationEssentials
import HTTPCaching
import HTTPTypes
import TieredCache

/// The request of a download to the cache, by its record and the options of the agent.
struct DownloadOrder {
    /// Whatever else is asked for comes before.
    static let priority = RequestPriority.background

    /// How often a run tries at most without progress.
    private static let maximumTries: Int64 = 5

    let request: CacheRequest
    /// How many requests for parts there are at once.
    let segments: Int

    /// - Throws: ``DownloadFailure`` for a record that no request can be made of.
    init(
        _ record: DownloadRecord,
        options: DownloadOptions,
        limiter: BandwidthLimiter
    ) throws(DownloadFailure) {
        var request: CacheRequest
        do throws(CacheError) {
            request = try CacheRequest(record.uri ?? "")
        } catch {
            throw DownloadFailure(DownloadProblem(error))
        }
        for field in options.fields { request.fields.append(field) }
        if let referer = options["referer"], !referer.isEmpty {
            // aria2's word for the URL itself.
            request.fields[.referer] = referer == "*" ? request.target.string : referer
        }
        if let agent = options["user-agent"], !agent.isEmpty { request.fields[.userAgent] = agent }
        if let user = options["http-user"] {
            let text = "\(user):\(options["http-passwd"] ?? "")"
            request.fields[.authorization] =
                "Basic " + Data(text.utf8).base64EncodedString()
        }
        if let digest = options["checksum"].flatMap({ DownloadChecksum($0) })?.digest {
            request.expectedDigests = [digest]
        }
        // What has come of one that waits must not be evicted for what plays meanwhile.
        request.options.set(.pinned, to: true)
        request.priority = Self.priority
        request.limiter = limiter
        request.timeout = .seconds(options.number("timeout"))
        let left = record.triesLeft(of: options.number("max-tries"))
        request.retries = Int(max(1, min(Self.maximumTries, left)))
        self.request = request
        segments = Int(
            clamping: min(options.number("split"), options.number("max-connection-per-server"))
        )
    }
}
