import FoundationEssentials
import HTTPCaching
import HTTPTypes
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Row 27: no way to the bytes leads past the decision about them.
@Suite("No way past the decision", .timeLimit(.minutes(1)))
struct BodyEndTests {
    private typealias Fixture = DigestFixture

    private let fixture = DigestFixture()
    private var time: ManualTimeSource { fixture.time }

    // MARK: Files

    @Test("a file is given of a body that is right, and of no other", arguments: [true, false])
    func path(isRight: Bool) async throws {
        let disk = InMemoryFileSystem(time: time)
        try await fixture.withCache(disk, ScriptedTransport([])) { cache in
            let request = try fixture.request()
            try await fixture.storePromising(isRight ? Fixture.body : Fixture.wrong, in: cache)
            let url = try await cache.fileURL(for: request)
            #expect((url != nil) == isRight)
            let path = try await cache.filePath(for: request)
            #expect((path != nil) == isRight)
            let expecting = try fixture.request(promising: Fixture.wrong)
            #expect(try await cache.fileURL(for: expecting) == nil)
        }
    }

    // MARK: Bodies that are not stored

    @Test("a reader of a body that is not stored learns at its end that it is wrong")
    func notStored() async throws {
        var answer = try fixture.answer(Fixture.wrong, promising: Fixture.body)
        answer.forbidStoring()
        let transport = ScriptedTransport([answer], time: time)
        try await fixture.withCache(InMemoryFileSystem(time: time), transport) { cache in
            let reader = try await cache.reader(for: fixture.request())
            try await read(reader, to: Fixture.body.count)
            for _ in 0..<2 {
                let error = await #expect(throws: CacheError.self) {
                    try await reader.read(at: Int64(Fixture.body.count), count: 1)
                }
                #expect(error?.code == .integrityFailed)
            }
            #expect(transport.requests.count == 1)
        }
    }

    @Test("so does one of a body without a length, in each way to read", arguments: [true, false])
    func notStoredWithoutLength(isBounded: Bool) async throws {
        var answer = try fixture.answer(Fixture.wrong, promising: Fixture.body)
        answer.forbidStoring()
        answer.head = answer.head.map { head in
            var head = head
            head.headerFields[.contentLength] = nil
            return head
        }
        let transport = ScriptedTransport(Array(repeating: answer, count: 4), time: time)
        try await fixture.withCache(InMemoryFileSystem(time: time), transport) { cache in
            let reader = try await cache.reader(for: fixture.request())
            let byReader = await #expect(throws: CacheError.self) {
                var position: Int64 = 0
                while true {
                    let bytes = try await reader.read(at: position, count: 1 << 20)
                    if bytes.isEmpty { return }
                    position += Int64(bytes.count)
                }
            }
            #expect(byReader?.code == .integrityFailed)
            var request = try fixture.request()
            if isBounded { request.range = .bounded(0..<10_000_000) }
            let response = try await cache.response(for: request)
            let byBody = await #expect(throws: CacheError.self) {
                try await response.body.collect()
            }
            #expect(byBody?.code == .integrityFailed)
        }
    }

    @Test("a reader that seeks learns it as well where the disk is full")
    func fullDisk() async throws {
        let answer = try fixture.answer(
            Fixture.wrong,
            promising: Fixture.body,
            delay: .seconds(1)
        )
        let disk = InMemoryFileSystem(time: time)
        let transport = ScriptedTransport([answer], time: time)
        try await fixture.withCache(disk, transport) { cache in
            let reader = try await cache.reader(for: fixture.request())
            try await read(reader, to: 65_536)
            await time.waitForSleeper(within: .seconds(1))
            disk.fail(.write, with: .noSpace, times: 1000)
            let rest = Task { try await read(reader, from: 65_536, to: Fixture.body.count) }
            time.advance(by: .seconds(1))
            try await rest.value
            for _ in 0..<2 {
                let error = await #expect(throws: CacheError.self) {
                    try await reader.read(at: Int64(Fixture.body.count), count: 1)
                }
                #expect(error?.code == .integrityFailed)
            }
            disk.heal()
        }
    }

    @Test("a reader of a body that is not stored asks again no longer than a read may take")
    func askedAgain() async throws {
        var answer = try fixture.answer(Fixture.body)
        answer.forbidStoring()
        let transport = ScriptedTransport([answer, .silence], time: time)
        try await fixture.withCache(InMemoryFileSystem(time: time), transport) { cache in
            let reader = try await cache.reader(for: fixture.request())
            try await read(reader, to: Fixture.body.count)
            let again = Task { try await reader.read(at: 0, count: 1, deadline: .seconds(1)) }
            await transport.waitForRequests(2)
            await time.waitForSleeper(within: .seconds(1))
            time.advance(by: .seconds(1))
            let result = await again.result
            let error = #expect(throws: CacheError.self) { try result.get() }
            #expect(error?.code == .timedOut)
        }
    }

    private func read(_ reader: CacheReader, from start: Int = 0, to end: Int) async throws {
        var position = start
        while position < end {
            let bytes = try await reader.read(at: Int64(position), count: end - position)
            #expect(!bytes.isEmpty)
            guard !bytes.isEmpty else { return }
            position += bytes.count
        }
    }

    // MARK: Names

    @Test("a relay lets no wrong body take the name of a pinned one")
    func relay() async throws {
        let answer = try fixture.answer(Fixture.wrong, promising: Fixture.body)
        let transport = ScriptedTransport([answer], time: time)
        try await fixture.withCache(InMemoryFileSystem(time: time), transport) { cache in
            var pinned = try fixture.request()
            pinned.options.insert(.pinned)
            try await cache.store(Fixture.body, for: pinned)
            var relayed = try fixture.request()
            relayed.relay = CacheRequest.Relay()
            relayed.policy = .reload
            // Its client can compare by itself.
            let bytes = try await cache.response(for: relayed).body.collect()
            #expect(firstDifference(bytes, Fixture.wrong) == nil)
            while cache.engine.transfers.queue.snapshot().count(.running) > 0 { await Task.yield() }
            var stored = try fixture.request()
            stored.policy = .cacheOnly
            let kept = try await cache.data(for: stored)
            #expect(firstDifference(kept, Fixture.body) == nil)
            #expect(try await cache.entry(for: stored)?.isPinned == true)
        }
    }

    // MARK: Promises that change

    @Test("a part without a digest takes nothing back of what the whole has promised")
    func partWithoutDigest() async throws {
        let length = 12 << 20
        let promise = try fixture.answer(Fixture.body, promising: Fixture.body)
        let promised = try promise.head.get().headerFields
        let transport = ScriptedTransport(time: time) { request, index in
            let range = request.head.headerFields[.range] ?? ""
            let bounds = range.dropFirst(6).split(separator: "-")
            let start = bounds.first.flatMap { Int($0) } ?? 0
            let end = bounds.count > 1 ? Int(bounds[1]) ?? length - 1 : length - 1
            var fields = index == 0 ? promised : [:]
            fields[.contentLength] = "\(end - start + 1)"
            fields[.contentRange] = "bytes \(start)-\(end)/\(length)"
            fields[.eTag] = "\"1\""
            fields[.cacheControl] = "max-age=60"
            var answer = ScriptedResponse(
                status: 206,
                fields: fields,
                steps: [.bytes(Array(repeating: 1, count: min(end - start + 1, 65_536))), .stall]
            )
            answer.headDelay = .seconds(index + 1)
            return answer
        }
        try await fixture.withCache(InMemoryFileSystem(time: time), transport) { cache in
            let request = try fixture.request()
            let first = Task { try await cache.reader(for: request) }
            await transport.waitForRequests(1)
            let second = Task { try await cache.reader(for: request, at: 11 << 20) }
            await transport.waitForRequests(2)
            let reader = try await value(of: first)
            let other = try await value(of: second)
            let store = try #require(cache.engine.storage.disk.openStore)
            let entry = try #require(try store.entry(for: request.key))
            let head = try #require(StoredResponse(encoded: entry.metadata))
            #expect(head.promisedDigests == [try .of(Fixture.body)])
            withExtendedLifetime((reader, other)) {}
        }
    }

    /// Waits for a task, and lets pass what short sleeps it takes.
    private func value<Success: Sendable>(
        of task: Task<Success, any Error>
    ) async throws -> Success {
        let ticks = Task {
            while !Task.isCancelled {
                if let next = time.timeToNextDeadline, next <= .seconds(2) {
                    time.advanceToNextDeadline()
                }
                await Task.yield()
            }
        }
        defer { ticks.cancel() }
        return try await task.value
    }

    @Test("the Content-MD5 of a part is not that of the whole")
    func digestOfPart() async throws {
        let name = try #require(HTTPField.Name("Content-MD5"))
        var part = try fixture.lastBlock(of: Fixture.body)
        part.head = part.head.map { head in
            var head = head
            head.headerFields[name] = Data(repeating: 3, count: 16).base64EncodedString()
            return head
        }
        var rest = try fixture.lastBlock(of: Fixture.body)
        rest.steps = [.bytes([UInt8](Fixture.body.prefix(65_536)))]
        rest.head = rest.head.map { head in
            var head = head
            head.headerFields[.contentLength] = "65536"
            head.headerFields[.contentRange] = "bytes 0-65535/\(Fixture.body.count)"
            return head
        }
        let transport = ScriptedTransport([part, rest], time: time)
        try await fixture.withCache(InMemoryFileSystem(time: time), transport) { cache in
            var tail = try fixture.request()
            tail.range = .bounded(65_536..<Int64(Fixture.body.count))
            _ = try await cache.response(for: tail).body.collect()
            let bytes = try await cache.response(for: fixture.request()).body.collect()
            #expect(firstDifference(bytes, Fixture.body) == nil)
            #expect(transport.requests.count == 2)
        }
    }

    @Test("a 304 that promises another body confirms nothing", arguments: [true, false])
    func otherPromise(isInMemory: Bool) async throws {
        var confirmation = try fixture.answer(Fixture.body, promising: Fixture.wrong)
        confirmation.steps = []
        confirmation.head = confirmation.head.map { head in
            var head = head
            head.status = .notModified
            head.headerFields[.contentLength] = nil
            return head
        }
        let transport = ScriptedTransport(
            [
                try fixture.answer(Fixture.body, promising: isInMemory ? nil : Fixture.body),
                confirmation,
                try fixture.answer(Fixture.wrong, promising: Fixture.wrong),
            ],
            time: time
        )
        try await fixture.withCache(InMemoryFileSystem(time: time), transport) { cache in
            let request = try fixture.request()
            if isInMemory {
                _ = try await cache.data(for: request)
                #expect(cache.cachedData(for: request) != nil)
            } else {
                _ = try await cache.response(for: request).body.collect()
            }
            time.advance(by: .seconds(61))
            let bytes = try await cache.data(for: request)
            #expect(firstDifference(bytes, Fixture.wrong) == nil)
            #expect(transport.requests.count == 3)
            #expect(cache.cachedData(for: request) == bytes)
        }
    }

    @Test("the file of a body in memory is not sent before it was compared")
    func fileOfMemory() async throws {
        let answer = try fixture.answer(Fixture.body, promising: Fixture.body)
        let transport = ScriptedTransport([answer], time: time)
        try await fixture.withCache(InMemoryFileSystem(time: time), transport) { cache in
            let request = try fixture.request()
            _ = try await cache.data(for: request)
            let hit = try #require(cache.responder.hit(for: RepeatedRequest(request), range: nil))
            guard case .disk(let entry) = hit.bytes else {
                Issue.record("the file of a large body is sent")
                return
            }
            // Damaged, and fetched again with other bytes.
            entry.lose(0)
            try Data(repeating: 9, count: 65_536).withUnsafeBytes {
                try entry.beginWriting(at: 0).writeAndEnd($0)
            }
            #expect(entry.isComplete)
            let again = try #require(cache.responder.hit(for: RepeatedRequest(request), range: nil))
            guard case .memory(let bytes) = again.bytes else {
                Issue.record("the file is sent that nothing has compared")
                return
            }
            #expect(firstDifference(bytes, Fixture.body) == nil)
        }
    }
}

extension ScriptedResponse {
    fileprivate mutating func forbidStoring() {
        head = head.map { head in
            var head = head
            head.headerFields[.cacheControl] = "no-store"
            return head
        }
    }
}
