#if os(Linux)
import FoundationEssentials
import HTTPCaching
import HTTPTypes
import TieredCacheTesting

@testable import TieredCache

/// One of several clients of the cache at the same time; compares each response with the model.
struct SimulatedClient: Sendable {
    let number: Int
    let world: SimulatedWorld

    var scheduler: SimulationScheduler { world.scheduler }

    func request(_ url: Int) throws(CacheError) -> CacheRequest {
        try CacheRequest("http://\(SimulatedOrigin.host)/u\(url)")
    }

    func note(_ text: String) { scheduler.handOver("client \(number) \(text)") }

    func fail(_ message: String) { world.fail("client \(number): \(message)") }

    func sleep(_ duration: Duration) async {
        do {
            try await scheduler.time.sleep(for: duration)
        } catch {
            return  // Clients are never cancelled.
        }
    }

    // MARK: Reading

    /// Gets a URL, or is cancelled over it.
    func get(_ url: Int, _ get: SimulationPlan.Get) async {
        guard get.isCancelled else { return await fetch(url, get) }
        let task = Task { await fetch(url, get) }
        await sleep(.milliseconds(60))
        task.cancel()
        await task.value
    }

    /// Gets a URL and compares each byte.
    private func fetch(_ url: Int, _ get: SimulationPlan.Get) async {
        guard let process = world.process else { return }
        let beginning = world.model.begin(url)
        note("gets u\(url) \(get)")
        do throws(CacheError) {
            var request = try request(url)
            request.policy = get.policy
            request.range = get.range
            request.options.set(.pinned, to: get.isPinned)
            if get.isWhole {
                let bytes = try await process.cache.data(for: request)
                compare(bytes, with: world.origin.history(of: url), url)
            } else {
                let response = try await process.cache.response(for: request)
                try await read(response, url, get, process)
            }
            note("has got u\(url)")
        } catch {
            judge(error, beginning, get)
        }
    }

    private func compare(_ bytes: Data, with history: [Representation], _ url: Int) {
        var check = BodyCheck(history)
        if let complaint = bytes.withUnsafeBytes({ check.take($0) }) {
            fail("u\(url): \(complaint)")
        }
        guard !check.candidates.contains(where: { $0.bytes.count == bytes.count }) else { return }
        fail("u\(url): \(bytes.count) bytes, which is no representation's length")
    }

    private func read(
        _ response: CacheResponse,
        _ url: Int,
        _ get: SimulationPlan.Get,
        _ process: SimulatedProcess
    ) async throws(CacheError) {
        try response.requireSuccess(of: request(url))
        let tag = response.fields[.eTag]
        let history = world.origin.history(of: url)
        guard history.contains(where: { $0.tag == tag }) else {
            return fail("u\(url): no representation has the tag \(tag ?? "none")")
        }
        var check = BodyCheck(history, tag: tag, from: response.range.lowerBound)
        var iterator = response.body.makeAsyncIterator()
        var chunks = 0
        while chunks < get.maximumChunks {
            chunks += 1
            if get.pause > 0 { await sleep(.milliseconds(get.pause)) }
            if get.leases,
                let sent = iterator.lease(1...65_536, send: { send($0, &check, url, process) })
            {
                guard sent > 0 else { return }
                continue
            }
            guard let chunk = try await iterator.next() else {
                return checkEnd(check, get, url)
            }
            if let complaint = chunk.withUnsafeBytes({ check.take($0) }) {
                return fail("u\(url): \(complaint)")
            }
        }
    }

    /// Sends leased bytes from their file, as the kernel would, while others are at work.
    ///
    /// - Returns: how many; 0 if the file no longer reaches so far, so that the response is cut.
    private func send(
        _ yielded: LeasedBytes,
        _ check: inout BodyCheck,
        _ url: Int,
        _ process: SimulatedProcess
    ) -> Int64 {
        scheduler.handOver("sends u\(url) \(yielded.range)")
        var bytes = [UInt8](repeating: 0, count: Int(yielded.count))
        let count = bytes.withUnsafeMutableBytes { buffer in
            do throws(FileSystemError) {
                let file = OpenFile(number: yielded.descriptor)
                return try process.files.base.read(file, into: buffer, at: yielded.place.lowerBound)
            } catch {
                return 0
            }
        }
        guard count == bytes.count else {
            let mayFail = world.profile.damage || world.profile.diskFaults
            if !mayFail { fail("u\(url): lent bytes are gone") }
            return 0
        }
        if let complaint = bytes.withUnsafeBytes({ check.take($0) }) {
            fail("u\(url), sent from its file: \(complaint)")
        }
        return yielded.count
    }

    private func checkEnd(_ check: BodyCheck, _ get: SimulationPlan.Get, _ url: Int) {
        let isWhole = check.candidates.contains { candidate in
            let length = Int64(candidate.bytes.count)
            let end = get.range.map { $0.resolved(completeLength: length)?.upperBound } ?? length
            return end == check.offset
        }
        if !isWhole { fail("u\(url): the body ends at \(check.offset)") }
    }

    // MARK: Errors

    /// Whether a request may fail as it did.
    private func judge(
        _ error: CacheError,
        _ beginning: SimulationModel.Beginning,
        _ get: SimulationPlan.Get
    ) {
        note("fails: \(error.code)")
        let model = world.model
        guard model.epoch == beginning.epoch else { return }
        let url = beginning.url
        if error.code == .cancelled, get.isCancelled { return }
        if model.isStillPromised(beginning), get.policy == .cacheOnly, get.range == nil {
            return fail("u\(url) is pinned, and cache-only says: \(error)")
        }
        switch error.code {
        case .notCached where get.policy == .cacheOnly: return
        case .rangeNotSatisfiable where get.range != nil: return
        case .originFailed, .timedOut, .representationChanged, .httpStatus:
            if world.origin.isDisturbed(url) { return }
            // Without a strong validator it cannot go on once another client fetches it anew.
            if error.code == .representationChanged, world.origin.isUntagged(url) { return }
        default: break
        }
        fail("u\(url) fails without a cause: \(error)")
    }
}
#endif
