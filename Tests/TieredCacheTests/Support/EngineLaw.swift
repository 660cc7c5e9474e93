import FoundationEssentials
import HTTPCaching
import HTTPTypes
import SystemPackage

@testable import TieredCache
@testable import TieredCacheTesting

/// What holds for an engine whatever its origin answers and its clients ask.
///
/// Bytes, of a fuzzer or of a seeded generator, make an origin's responses and the requests that
/// meet them: ranges, lengths and offsets near the limits of numbers, redirects, cuts, lies. The
/// law: nothing traps; everything ends; what is delivered is of one representation, byte by byte;
/// and as soon as the origin is honest, all of it is.
enum EngineLaw {
    /// Runs one case.
    ///
    /// - Parameter input: what is made of it; any bytes will do.
    /// - Returns: what was broken; nil if the law holds.
    static func breach(_ input: [UInt8]) async -> String? {
        var script = EngineScript(input)
        let origin = HostileOrigin(&script)
        var configuration = MediaCache.Configuration(path: "/cache")
        configuration.transport = ScriptedTransport(time: InstantTime()) { request, index in
            var answer = origin.answer(request)
            answer.comesWhole = index % 2 == 0
            return answer
        }
        configuration.timeSource = InstantTime()
        configuration.respondsToMemoryPressure = false
        configuration.minimumFreeDisk = 0
        configuration.keepsHistory = false
        configuration.retries = 3
        configuration.diskLimit = 4 << 20
        do {
            let cache = try MediaCache(configuration, fileSystem: InMemoryFileSystem())
            let found = await breach(of: cache, origin, &script)
            await cache.shutdown()
            return found
        } catch {
            return "the cache cannot be made: \(error)"
        }
    }

    private static func breach(
        of cache: MediaCache,
        _ origin: HostileOrigin,
        _ script: inout EngineScript
    ) async -> String? {
        for _ in 0..<Int(1 + script.next() % 4) {
            let order = EngineOrder(&script)
            do {
                let got = try await order.run(cache)
                guard origin.explains(got.bytes, at: got.start) else {
                    return "\(order) gave \(got.bytes.count) bytes of no one representation"
                }
            } catch {
                // An origin that lies may cost the response.
            }
        }
        origin.becomeHonest()
        do {
            var request = try CacheRequest(HostileOrigin.url)
            request.policy = .reload
            let bytes = try await cache.data(for: request)
            guard bytes == origin.whole else { return "an honest origin's bytes are not delivered" }
            request.policy = .protocolDefault
            guard try await cache.data(for: request) == bytes else {
                return "what an honest origin gave is not what is stored"
            }
            return nil
        } catch {
            return "an honest origin is not believed: \(error)"
        }
    }
}

/// Bytes taken one after the other; zeros when they are used up.
struct EngineScript: Sendable {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func next() -> UInt8 {
        guard position < bytes.count else { return 0 }
        defer { position += 1 }
        return bytes[position]
    }

    mutating func choose<Element>(_ elements: [Element]) -> Element {
        elements[Int(next()) % elements.count]
    }

    /// An offset: small, at the edge of a block, or where sums overflow.
    mutating func offset() -> Int64 {
        let near: Int64 = choose([
            0, 0, 0, 65_536, 131_072, 4 << 20, 1 << 32, 1 << 40, 1 << 61, 1 << 62, .max - 65_536,
            .max,
        ])
        let distance = Int64(Int8(bitPattern: next())) * choose([1, 1, 1, 500])
        let (sum, overflow) = near.addingReportingOverflow(distance)
        return overflow ? .max : max(0, sum)
    }
}

/// One thing that a client asks for.
struct EngineOrder: Sendable, CustomStringConvertible {
    private enum Way: CaseIterable {
        case data, relay, reader, streamed, prefetch, reload
    }

    private let way: Way
    private let spec: ByteRangeSpec?
    private let offset: Int64

    init(_ script: inout EngineScript) {
        way = script.choose(Way.allCases)
        offset = script.offset()
        switch script.next() % 5 {
        case 0: spec = nil
        case 1: spec = .suffix(offset)
        case 2: spec = .openEnded(from: offset)
        default:
            let count = script.choose([1, 8, 65_536, 70_000, 1 << 61, .max] as [Int64])
            let (end, overflow) = offset.addingReportingOverflow(count)
            spec = overflow ? .openEnded(from: offset) : .bounded(offset..<end)
        }
    }

    var description: String { "\(way) \(spec.map(\.fieldValue) ?? "all") at \(offset)" }

    /// - Returns: what was delivered, and from which offset on.
    func run(_ cache: MediaCache) async throws -> (bytes: Data, start: Int64) {
        var request = try CacheRequest(HostileOrigin.url)
        request.range = spec
        switch way {
        case .data: return try await read(cache.response(for: request))
        case .streamed: return try await read(cache.streamedResponse(for: request))
        case .reload:
            request.policy = .reload
            return try await read(cache.response(for: request))
        case .prefetch:
            _ = try await cache.prefetch(request, bytes: offset)
            return (Data(), 0)
        case .reader:
            return (try await read(cache.reader(for: request, at: offset)), offset)
        case .relay:
            return try await relay(cache)
        }
    }

    private func read(_ response: CacheResponse) async throws -> (bytes: Data, start: Int64) {
        (try await response.body.collect(), response.range.lowerBound)
    }

    private func read(_ reader: CacheReader) async throws -> Data {
        var bytes = Data()
        for try await chunk in reader.chunks(from: offset) { bytes += chunk }
        return bytes
    }

    /// As the reverse proxy asks; a part says itself where it lies.
    private func relay(_ cache: MediaCache) async throws -> (bytes: Data, start: Int64) {
        var fields = HTTPFields()
        fields[.range] = spec.map { RangeRequest($0).fieldValue }
        let target = try TargetURI(HostileOrigin.relayedURL)
        let response = try await cache.relay(
            RelayRequest(method: .get, target: target, fields: fields)
        )
        let bytes = try await response.body.collect()
        switch response.status.code {
        case 200: return (bytes, 0)
        case 206:
            let part = try ContentRange.parse(in: response.fields)?.range
            return part.map { (bytes, $0.lowerBound) } ?? (Data(), 0)
        default: return (Data(), 0)
        }
    }
}
