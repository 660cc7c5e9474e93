import FoundationEssentials
import NIOCore
import Testing
import TieredCacheTesting

@testable import TieredCache

/// What waits for a reader takes no more memory than is counted.
@Suite("Bodies that are not stored", .timeLimit(.minutes(10)))
struct WindowBodyTests {
    private let window = WindowBody(start: 100, completeLength: nil)

    private static func bytes(_ range: Range<Int>) -> [UInt8] {
        range.map { UInt8(truncatingIfNeeded: $0) }
    }

    /// What can be taken at an offset; nil if nothing has come.
    private func taken(at offset: Int64, atMost count: Int = .max) throws -> [UInt8]? {
        guard case .bytes(let bytes) = try window.take(at: offset, atMost: count) else {
            return nil
        }
        return [UInt8](bytes)
    }

    @Test("A thousand chunks of one byte wait as a few")
    func shortChunksAreJoined() async throws {
        let total = 200_000
        for index in 0..<total {
            let byte = UInt8(truncatingIfNeeded: index)
            try await window.append(BodyChunk([byte]), at: 100 + Int64(index))
        }
        let last = [UInt8](repeating: 7, count: 8192)
        try await window.append(BodyChunk(last), at: 100 + Int64(total))
        window.finish(.success(nil))
        var bytes: [UInt8] = []
        var chunks = 0
        while let chunk = try taken(at: window.position) {
            chunks += 1
            bytes += chunk
        }
        #expect(chunks <= 16)
        #expect(firstDifference(bytes, Self.bytes(0..<total) + last) == nil)
    }

    @Test("Bytes are taken at any offset ahead, once, in pieces of any size")
    func offsets() async throws {
        try await window.append(BodyChunk(Self.bytes(0..<50)), at: 100)
        try await window.append(BodyChunk(Self.bytes(50..<90)), at: 150)
        #expect(try taken(at: 100, atMost: 10) == Self.bytes(0..<10))
        #expect(window.hasDelivered && window.position == 110)
        #expect(try taken(at: 120) == Self.bytes(20..<50))
        #expect(try taken(at: 155, atMost: 5) == Self.bytes(55..<60))
        for offset: Int64 in [100, 159] {
            guard case .outOfReach = try window.take(at: offset, atMost: 1) else {
                Issue.record("byte \(offset) is taken again")
                return
            }
        }
        guard case .outOfReach = try window.take(at: 171, atMost: 1, within: 10) else {
            Issue.record("it waits for what is out of reach")
            return
        }
        #expect(try taken(at: 170) == Self.bytes(70..<90))
        guard case .awaited = try window.take(at: 190, atMost: 1) else {
            Issue.record("bytes are taken that have not come")
            return
        }
        window.finish(.success(190))
        guard case .end = try window.take(at: 190, atMost: 1) else {
            Issue.record("the end is not told")
            return
        }
        #expect(window.bodyEnd == 190)
    }

    @Test("Bytes that have come count once, and none may be left out")
    func order() async throws {
        try await window.append(BodyChunk(Self.bytes(0..<50)), at: 100)
        #expect(try taken(at: 100) == Self.bytes(0..<50))
        for start in [0, 20, 50] {
            let chunk = BodyChunk(Self.bytes(start..<60))
            try await window.append(chunk, at: 100 + Int64(start))
        }
        #expect(try taken(at: 150) == Self.bytes(50..<60))
        await #expect(throws: CacheError.self) {
            try await window.append(BodyChunk([1]), at: 161)
        }
    }

    @Test("Another body follows only where no byte of the first one was taken")
    func restarts() async throws {
        try await window.append(BodyChunk(Self.bytes(0..<50)), at: 100)
        #expect(!window.restart(start: 0, completeLength: nil))
        #expect(!window.restart(start: 100, completeLength: 5))
        #expect(window.restart(start: 100, completeLength: nil))
        try await window.append(BodyChunk(Self.bytes(7..<9)), at: 100)
        #expect(try taken(at: 100) == [7, 8])
        #expect(!window.restart(start: 100, completeLength: nil))
    }

    @Test("A reader that leaves ends the transfer's next append")
    func leaving() async throws {
        #expect(window.claim() && !window.claim())
        try await window.append(BodyChunk(Self.bytes(0..<50)), at: 100)
        window.leave()
        await #expect(throws: CacheError.self) {
            try await window.append(BodyChunk([1]), at: 150)
        }
    }

    #if HTTPClient
    @Test("The same holds for what a connection has received and nothing has asked for")
    func shortPiecesAreJoined() {
        var state = ExchangeState()
        for index in 0..<100_000 {
            state.didReceivePart(ByteBuffer(bytes: [UInt8(truncatingIfNeeded: index)]))
        }
        _ = state.didEnd(nil)
        var bytes: [UInt8] = []
        var pieces = 0
        while case .success(let piece?) = state.takePart()?.0 {
            pieces += 1
            bytes += Array(buffer: piece)
        }
        #expect(pieces <= 16)
        #expect(bytes.count == 100_000)
        #expect(bytes.indices.allSatisfy { bytes[$0] == UInt8(truncatingIfNeeded: $0) })
    }
    #endif
}
