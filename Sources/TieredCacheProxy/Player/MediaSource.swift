import HTTPCaching
import HTTPTypes
import TieredCache

/// Gets a representation for players, with retries.
///
/// Failures become 502 or 504 if the player has no bytes of the file yet. Otherwise they become a
/// dropped connection, because players take an error response for bytes of the file.
struct MediaSource: Sendable {
    /// The result of opening.
    enum Opened: Sendable {
        case response(CacheResponse)
        /// The range lies beyond the given complete length.
        case unsatisfiable(Int64)
        /// The range cannot be sent before the length is known.
        case lengthUnknown
        /// The status to answer with.
        case failed(Int)
        /// The connection must be dropped.
        case cut
    }

    let cache: MediaCache
    let settings: ProxySettings
    let target: TargetURI
    private let answered: AnsweredItems
    private(set) var base: CacheRequest

    init(
        cache: MediaCache,
        settings: ProxySettings,
        request: ServerRequest,
        target: TargetURI,
        answered: AnsweredItems,
        cookies: PlayerCookies
    ) {
        self.cache = cache
        self.settings = settings
        self.target = target.withoutUserinfo
        self.answered = answered
        base = Self.request(
            for: target,
            fields: RelayedFields.of(
                request,
                for: target,
                cookies: cookies,
                includesAll: settings.relaysPlayerFields
            ),
            by: settings.rules
        )
    }

    /// The request to the cache for a player's request.
    ///
    /// - Parameters:
    ///   - target: the URL.
    ///   - fields: the player's own fields; they go before those of the URL's userinfo.
    ///   - rules: the rules for hosts, whose fields go before all others.
    /// - Returns: the request.
    static func request(
        for target: TargetURI,
        fields: HTTPFields = [:],
        by rules: HostRules
    ) -> CacheRequest {
        var result = CacheRequest(target, key: rules.key(for: target), method: .get)
        if !fields.isEmpty {
            let own = result.fields.filter { !fields.contains($0.name) }
            result.fields = fields
            result.fields.append(contentsOf: own)
            result.firstOriginFields = Set(fields.map(\.name)).subtracting([
                .acceptLanguage, .userAgent,
            ])
        }
        rules.apply(to: &result)
        result.priority = .playing
        return result
    }

    /// Accepts stored responses of any age.
    mutating func usePending() { base.policy = .cacheElseLoad }

    // MARK: Opening

    /// Asks the cache repeatedly until the time limit.
    ///
    /// - Parameter range: the requested bytes; nil for all.
    /// - Returns: the result.
    /// - Throws: `CancellationError` if the task was cancelled.
    func open(_ range: ByteRangeSpec?) async throws -> Opened {
        var request = base
        request.range = range
        var retry = OpenRetry(settings)
        var isKnown = false
        while true {
            let failure: OpenRetry.Failure
            switch try await attempt(request, within: retry.timeLeft(isKnown: isKnown)) {
            case .success(let opened):
                guard case .response(let response) = opened, response.status.code >= 400,
                    let isPassing = Self.isPassing(response.status.code, range: range),
                    await self.isKnown()
                else { return opened }
                guard isPassing else { return .cut }
                failure = .unavailable
            case .failure(let found):
                failure = found
            }
            isKnown = await self.isKnown()
            guard let delay = retry.delay(after: failure, isKnown: isKnown) else {
                return isKnown ? .cut : .failed(failure.status)
            }
            try await settings.timeSource.sleep(for: delay)
        }
    }

    /// Whether to retry after an error status, given that a player has bytes of the file.
    ///
    /// - Returns: nil for an error that is sent nevertheless: the player can react to it, or
    ///   playback starts with this request.
    private static func isPassing(_ status: Int, range: ByteRangeSpec?) -> Bool? {
        guard status != 401, status != 407, status >= 500 || range?.goesOn == true else {
            return nil
        }
        return StatusCode.mayPass(status)
    }

    /// Records that a player receives bytes of the file.
    func didAnswer() { answered.insert(.init(base)) }

    private func attempt(
        _ request: CacheRequest,
        within time: Duration
    ) async throws -> Result<Opened, OpenRetry.Failure> {
        do {
            let response = try await Deadline.run(within: time, time: settings.timeSource) {
                [cache, settings] in
                try await cache.streamedResponse(for: request, deadline: settings.stallTimeout)
            }
            guard let response else { return .failure(.timedOut) }
            return .success(try opened(response, for: request))
        } catch let error as CacheError {
            try Task.checkCancellation()
            switch error.code {
            case .rangeNotSatisfiable:
                return .success(await unsatisfiable(request, completeLength: error.completeLength))
            case .shutDown: return .success(.cut)
            default: return .failure(.init(error))
            }
        }
    }

    /// Rejects a part of a body of unknown length, unless it starts at the first byte.
    private func opened(_ response: CacheResponse, for request: CacheRequest) throws -> Opened {
        guard response.status.code == 200, response.completeLength == nil,
            request.range != nil, response.range.lowerBound > 0
        else { return .response(response) }
        return .lengthUnknown
    }

    /// The result for a range that the cache reports as unsatisfiable, or cannot locate.
    private func unsatisfiable(_ request: CacheRequest, completeLength: Int64?) async -> Opened {
        if request.range == .bounded(0..<1) {
            // The first byte does not exist: the file is empty.
            return await whole()
        }
        return completeLength.map { .unsatisfiable($0) } ?? .lengthUnknown
    }

    private func whole() async -> Opened {
        do {
            return .response(try await cache.response(for: base))
        } catch {
            return .failed(502)
        }
    }

    /// Whether a player may have received bytes of the file, now or before a restart.
    private func isKnown() async -> Bool {
        if answered.contains(.init(base)) { return true }
        do {
            return try await cache.entry(for: base).map { $0.storedBytes > 0 } ?? false
        } catch {
            return false
        }
    }

    /// Reads a body of unknown length to its end, so that ranges of it can be sent.
    func findLength() async throws {
        guard case .response(let response) = try await open(nil), response.status.code == 200
        else { return }
        for try await _ in response.body {}
    }

    // MARK: Fields of a response

    func tag(of response: CacheResponse) -> EntityTag? {
        let final = response.finalTarget.string
        return GenerationTag.of(
            fields: response.fields,
            target: target,
            finalURL: final == target.string ? nil : final,
            generation: response.generation
        )
    }

    func fields(of response: CacheResponse) -> HTTPFields {
        PlayerFields.of(
            response.fields,
            tag: tag(of: response),
            acceptsRanges: response.completeLength != nil,
            status: response.cacheStatus
        )
    }
}
