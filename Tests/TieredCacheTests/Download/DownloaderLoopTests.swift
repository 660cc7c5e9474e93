import HTTPCaching
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite("Origins that would be asked for ever", .timeLimit(.minutes(10)))
struct DownloaderLoopTests: DownloaderSuite {
    /// Ways for an origin to send the same beginning for ever.
    enum Loop: CaseIterable {
        case noValidator, weakTag, rangeIgnored, untrustedRange
    }

    @Test("Bytes that came before are no progress: the attempts run out", arguments: Loop.allCases)
    func sameBeginning(loop: Loop) async throws {
        var origin = model()
        origin.cutAfter = 1234
        switch loop {
        case .noValidator: origin.tagPrefix = nil
        case .weakTag: origin.tagPrefix = "W/"
        case .rangeIgnored: origin.lie = .ignoresRanges
        case .untrustedRange: origin.lie = .noContentRange
        }
        let same = origin
        let transport = ScriptedTransport { request, _ in same.answer(request) }
        let error = await #expect(throws: CacheError.self) {
            try await run(plan(), into: RecordingSink(), transport)
        }
        #expect(error?.code == .originFailed)
        #expect(transport.requests.count <= 7)
    }

    @Test("Another representation is progress, but not an endless row of them")
    func everAnother() async throws {
        let model = model()
        let transport = ScriptedTransport { request, index in
            var another = model
            another.version = UInt8(truncatingIfNeeded: index)
            another.cutAfter = 1234
            return another.answer(request)
        }
        let error = await #expect(throws: CacheError.self) {
            try await run(plan(), into: RecordingSink(), transport)
        }
        #expect(error?.code == .originFailed)
        #expect(transport.requests.count <= 12)
    }
}
