import Dispatch
import FoundationEssentials
import Logging
import Synchronization
import TieredCacheTesting

@testable import TieredCache

extension CacheReader {
    /// Reads exactly `count` bytes, fewer at the end.
    func bytes(at offset: Int64, count: Int, deadline: Duration? = nil) async throws -> [UInt8] {
        var result: [UInt8] = []
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
        defer { buffer.deallocate() }
        while result.count < count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[result.count...])
            let got = try await unsafeRead(
                at: offset + Int64(result.count),
                into: rest,
                deadline: deadline
            )
            guard got > 0 else { break }
            result.append(contentsOf: rest[..<got])
        }
        return result
    }

    /// Reads all that a sequence of chunks gives.
    func all(from start: Int64 = 0, to end: Int64? = nil) async throws -> Data {
        var result = Data()
        for try await chunk in chunks(from: start, to: end) {
            result.append(chunk)
        }
        return result
    }
}

extension OriginResource {
    func bytes(_ range: Range<Int64>) -> [UInt8] {
        generatedBody?.bytes(in: range) ?? []
    }
}

/// Holds a lookup at the line that it logs between its two looks at what there is.
final class PausedLook: Sendable {
    private let isArmed = Atomic(false)
    private let paused = OriginGate()
    private let resumed = DispatchSemaphore(value: 0)

    var logger: Logger {
        Logger(label: "paused") { _ in
            ListeningLogHandler { [self] event, _ in
                guard "\(event.message)" == "lookup missed",
                    isArmed.exchange(false, ordering: .relaxed)
                else { return }
                paused.open()
                // So long that a test which has failed ends all the same.
                _ = resumed.wait(timeout: .now() + 120)
            }
        }
    }

    /// Makes the next lookup that misses pause until ``end()``.
    func begin() { isArmed.store(true, ordering: .relaxed) }

    func waitUntilPaused() async { await paused.wait() }

    func end() { resumed.signal() }
}
