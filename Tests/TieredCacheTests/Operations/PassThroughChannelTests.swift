import NIOCore
import Testing

@testable import TieredCache

/// What waits for a reader takes no more memory than is counted.
@Suite("Bodies that are not stored", .timeLimit(.minutes(10)))
struct PassThroughChannelTests {
    @Test("A thousand chunks of one byte wait as a few")
    func shortChunksAreJoined() async throws {
        let channel = PassThroughChannel(start: 0, completeLength: nil)
        let total = 200_000
        for index in 0..<total {
            try await channel.push(BodyChunk([UInt8(truncatingIfNeeded: index)]))
        }
        try await channel.push(BodyChunk([UInt8](repeating: 7, count: 8192)))
        channel.finish(.success(nil))
        var bytes: [UInt8] = []
        var chunks = 0
        while let chunk = try await channel.next() {
            chunks += 1
            chunk.withUnsafeBytes { bytes.append(contentsOf: $0) }
        }
        #expect(chunks <= 16)
        #expect(bytes.count == total + 8192)
        #expect(
            bytes.indices.prefix(total).allSatisfy { bytes[$0] == UInt8(truncatingIfNeeded: $0) }
        )
        #expect(bytes.suffix(8192).allSatisfy { $0 == 7 })
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
