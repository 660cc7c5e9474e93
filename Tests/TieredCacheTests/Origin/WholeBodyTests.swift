import FoundationEssentials
import HTTPCaching
import HTTPTypes
import SystemPackage
import Testing
import TieredCacheTesting

@testable import TieredCache

/// A body that has come with its head is stored by one call, and answers from memory.
@Suite("A body that comes with its head", .timeLimit(.minutes(1)))
struct WholeBodyTests {
    private static let body = [UInt8]((0..<5000).map { UInt8(truncatingIfNeeded: $0 / 3) })

    private let time = ManualTimeSource()

    /// An answer that comes whole, a second after its request.
    private func answer(_ fields: HTTPFields = [:]) -> ScriptedResponse {
        var all: HTTPFields = [.contentLength: "\(Self.body.count)", .eTag: "\"1\""]
        all[.cacheControl] = "max-age=60"
        for field in fields { all[field.name] = field.value }
        var answer = ScriptedResponse(status: 200, fields: all, steps: [.bytes(Self.body)])
        answer.comesWhole = true
        answer.headDelay = .seconds(1)
        return answer
    }

    private func withCache(
        _ answer: ScriptedResponse,
        on disk: InMemoryFileSystem? = InMemoryFileSystem(),
        _ body: (MediaCache, ScriptedTransport) async throws -> Void
    ) async throws {
        let transport = ScriptedTransport(time: time) { _, _ in answer }
        var configuration = DigestFixture().configuration(transport)
        configuration.timeSource = time
        if disk == nil { configuration.path = nil }
        let cache = try MediaCache(configuration, fileSystem: disk ?? InMemoryFileSystem())
        do {
            try await body(cache, transport)
        } catch {
            await cache.shutdown()
            throw error
        }
        await cache.shutdown()
    }

    /// The requests of several clients, all of which wait for an answer when it comes.
    private func answers(
        _ requests: [CacheRequest],
        from cache: MediaCache,
        exchanges: Int
    ) async throws -> [CacheResponse] {
        try await withThrowingTaskGroup(of: (Int, CacheResponse).self) { group in
            for (index, request) in requests.enumerated() {
                let before = cache.statistics.downloadsShared
                group.addTask { (index, try await cache.response(for: request)) }
                if index == 0 {
                    await time.waitForSleeper(within: .seconds(1))
                } else {
                    while cache.statistics.downloadsShared == before { await Task.yield() }
                }
            }
            for _ in 0..<exchanges {
                await time.waitForSleeper(within: .seconds(1))
                time.advance(by: .seconds(1))
            }
            var responses: [Int: CacheResponse] = [:]
            for try await (index, response) in group { responses[index] = response }
            return requests.indices.compactMap { responses[$0] }
        }
    }

    private func request(_ range: Range<Int64>? = nil) throws(CacheError) -> CacheRequest {
        var request = try CacheRequest("http://example.com/a")
        if let range { request.range = .bounded(range) }
        return request
    }

    @Test("All that wait for it get it of one exchange", arguments: [true, false])
    func shared(hasDirectory: Bool) async throws {
        let disk = hasDirectory ? InMemoryFileSystem() : nil
        try await withCache(answer(), on: disk) { cache, transport in
            let events = cache.events()
            let requests = [try request(), try request(), try request(100..<4000)]
            let responses = try await answers(requests, from: cache, exchanges: 1)
            #expect(transport.requests.count == 1)
            #expect(responses.map(\.cacheStatus.isCollapsed) == [false, true, true])
            for response in responses {
                #expect(response.source == .origin)
                let bytes = try await response.body.collect()
                let start = Int(response.offset)
                #expect(bytes == Data(Self.body[start..<start + bytes.count]))
                #expect(response.length == Int64(bytes.count))
                #expect(response.bytesFromOrigin == Int64(bytes.count))
                #expect(response.isStored == hasDirectory)
            }
            // Readers have such a body before the end of its transfer is counted.
            for await event in events { if case .downloadFinished = event.kind { break } }
            #expect(cache.statistics.bytesStored == (hasDirectory ? 5000 : 0))
        }
    }

    @Test("One that must not be stored is for one client")
    func forbidden() async throws {
        try await withCache(answer([.cacheControl: "no-store"])) { cache, transport in
            let requests = [try request(), try request()]
            let responses = try await answers(requests, from: cache, exchanges: 2)
            #expect(transport.requests.count == 2)
            for response in responses {
                #expect(try await response.body.collect() == Data(Self.body))
                #expect(!response.isStored)
            }
        }
    }

    @Test("It is kept in memory for those who ask for all of it", arguments: [true, false])
    func remembered(hasDirectory: Bool) async throws {
        let disk = hasDirectory ? InMemoryFileSystem() : nil
        try await withCache(answer(), on: disk) { cache, transport in
            async let data = cache.data(for: request())
            await time.waitForSleeper(within: .seconds(1))
            time.advance(by: .seconds(1))
            let first = try await data
            #expect(first == Data(Self.body))
            let second = try await cache.data(for: request())
            #expect(second == first)
            #expect(cache.statistics.memoryHits == 1)
            let isRemoved = try await cache.remove(request())
            let isStored = try await cache.contains(request())
            #expect(isRemoved && !isStored)
        }
    }

    @Test("A disk that refuses it costs no byte, and is told")
    func refused() async throws {
        let disk = InMemoryFileSystem()
        try await withCache(answer(), on: disk) { cache, transport in
            disk.fail(.write, with: .noSpace, times: 1000)
            let responses = try await answers([try request()], from: cache, exchanges: 1)
            let response = try #require(responses.first)
            #expect(try await response.body.collect() == Data(Self.body))
            #expect(response.storageError?.code == .localStorage)
            disk.heal()
        }
    }

    @Test("What the body of an application's transport makes of it is what counts")
    func decorated() async throws {
        let inner = ScriptedTransport(time: time) { [self] _, _ in
            var answer = answer()
            answer.headDelay = .zero
            return answer
        }
        var configuration = DigestFixture().configuration(inner)
        configuration.transport = Inverting(inner: inner)
        let cache = try MediaCache(configuration, fileSystem: InMemoryFileSystem())
        for _ in 0..<2 {
            let bytes = try await cache.data(for: request())
            #expect(bytes == Data(Self.body.map { ~$0 }))
        }
        await cache.shutdown()
    }

    @Test("A reader opens it at any offset")
    func reader() async throws {
        try await withCache(answer()) { cache, transport in
            async let opening = cache.reader(for: request())
            await time.waitForSleeper(within: .seconds(1))
            time.advance(by: .seconds(1))
            let reader = try await opening
            #expect(try await reader.read(at: 4000, count: 500) == Data(Self.body[4000..<4500]))
            #expect(try await reader.read(at: 0, count: 500) == Data(Self.body[..<500]))
            #expect(try await reader.read(at: 5000, count: 1).isEmpty)
            #expect(transport.requests.count == 1)
        }
    }

    @Test("It is compared with what was promised of it", arguments: [true, false])
    func promised(byOrigin: Bool) async throws {
        var fields: HTTPFields = [:]
        if byOrigin { try fields.promise(DigestFixture.body) }
        try await withCache(answer(fields)) { cache, transport in
            var request = try request()
            if !byOrigin { request.expectedDigests = [try .of(DigestFixture.body)] }
            let asked = request
            let data = Task { try await cache.data(for: asked) }
            for _ in 0..<2 {
                await time.waitForSleeper(within: .seconds(1))
                time.advance(by: .seconds(1))
            }
            await #expect(throws: CacheError.self) { _ = try await data.value }
        }
    }
}

/// A transport that inverts the bytes of another one.
private struct Inverting: Transport {
    let inner: ScriptedTransport

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        var response = try await inner.send(request)
        response.body = Body(inner: response.body)
        return response
    }

    func shutdown() async { await inner.shutdown() }

    private final class Body: TransportBody {
        let inner: any TransportBody

        init(inner: any TransportBody) { self.inner = inner }

        func next() async throws(TransportError) -> BodyChunk? {
            let chunk = try await inner.next()
            return chunk.map { chunk in BodyChunk(chunk.withUnsafeBytes { $0.map { ~$0 } }) }
        }

        func cancel() { inner.cancel() }
    }
}
