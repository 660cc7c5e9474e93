import HTTPCaching
import HTTPTypes
import TieredCache

/// Gets a representation for players, whatever the origin does.
///
/// Before an answer has begun, failures become 502 or 504 in the end; for a file that has been
/// answered before they become a dropped connection, because players take an error for its bytes.
struct MediaSource: Sendable {
    /// What opening has led to.
    enum Opened: Sendable {
        case response(CacheResponse)
        /// The range does not exist in that many bytes.
        case unsatisfiable(Int64)
        /// The range can only be given when the length is known.
        case lengthUnknown
        /// The status to answer with.
        case failed(Int)
        /// The connection is to be dropped.
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
        answered: AnsweredItems
    ) {
        self.cache = cache
        self.settings = settings
        self.target = target.withoutUserinfo
        self.answered = answered
        base = Self.request(for: target, from: request)
    }

    /// Our request for a player's: only what selects a representation is taken over, since
    /// requests that differ share nothing.
    ///
    /// The cookies of a browser are those of other servers on this machine, since none are set from
    /// here and ports do not tell cookies apart; no origin is to have them.
    static func request(
        for target: TargetURI,
        from request: ServerRequest
    ) -> CacheRequest {
        var result = CacheRequest(target, key: nil, method: .get)
        for name in [HTTPField.Name.authorization, .cookie] {
            guard let value = request.value(name.rawName),
                name != .cookie || !request.isFromBrowser
            else { continue }
            result.fields[name] = value
        }
        result.priority = .playing
        return result
    }

    /// Uses what is stored, of whatever age.
    mutating func usePending() { base.policy = .cacheElseLoad }

    // MARK: Opening

    /// Asks the cache, again and again while there is time.
    ///
    /// - Parameter range: the bytes wanted; nil for all.
    /// - Returns: what came of it.
    /// - Throws: `CancellationError` when nobody waits any more.
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
                    let isPassing = Self.isPassing(response.status.code, range),
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

    /// Whether an error is worth another try where a player has bytes of the file already.
    ///
    /// - Returns: nil for an error that it is told all the same: what it may do something about,
    ///   and any with which a play would begin.
    private static func isPassing(_ status: Int, _ range: ByteRangeSpec?) -> Bool? {
        guard status != 401, status != 407, status >= 500 || range?.goesOn == true else {
            return nil
        }
        return StatusCode.mayPass(status)
    }

    /// Notes that a player is given bytes of it.
    func didAnswer() { answered.insert(.init(base)) }

    private func attempt(
        _ request: CacheRequest,
        within time: Duration
    ) async throws -> Result<Opened, OpenRetry.Failure> {
        do {
            let response = try await Deadline.run(within: time, settings.timeSource) {
                [cache, settings] in
                try await cache.streamedResponse(for: request, deadline: settings.stallTimeout)
            }
            guard let response else { return .failure(.timedOut) }
            return .success(try opened(response, request))
        } catch let error as CacheError {
            try Task.checkCancellation()
            switch error.code {
            case .rangeNotSatisfiable: return .success(await unsatisfiable(request))
            case .timedOut: return .failure(.timedOut)
            case .shutDown: return .success(.cut)
            default: return .failure(.unavailable)
            }
        }
    }

    /// A part of a body whose length nobody knows yet, except from its first byte on.
    private func opened(_ response: CacheResponse, _ request: CacheRequest) throws -> Opened {
        guard response.status.code == 200, response.completeLength == nil,
            request.range != nil, response.range.lowerBound > 0
        else { return .response(response) }
        return .lengthUnknown
    }

    /// A range that the cache says does not exist, or that it cannot place.
    private func unsatisfiable(_ request: CacheRequest) async -> Opened {
        if request.range == .bounded(0..<1) {
            // Not even the first byte: the file is empty.
            return await whole()
        }
        guard let length = await length() else { return .lengthUnknown }
        return .unsatisfiable(length)
    }

    private func whole() async -> Opened {
        do {
            return .response(try await cache.response(for: base))
        } catch {
            return .failed(502)
        }
    }

    private func length() async -> Int64? {
        do {
            return try await cache.entry(for: base)?.length
        } catch {
            // A disk that cannot be asked knows no length; the origin is asked instead.
            return nil
        }
    }

    /// Whether a player may have been given something of the file: then, or before a restart.
    private func isKnown() async -> Bool {
        if answered.contains(.init(base)) { return true }
        do {
            return try await cache.entry(for: base).map { $0.storedBytes > 0 } ?? false
        } catch {
            return false
        }
    }

    /// Reads a body of unknown length to its end, so that its parts can be given.
    func findLength() async throws {
        guard case .response(let response) = try await open(nil), response.status.code == 200
        else { return }
        for try await _ in response.body {}
    }

    // MARK: What a response means here

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
