import HTTPCaching
import HTTPTypes

@testable import TieredCache

/// A sink that keeps the bytes of the present generation, and refuses what no sink may see.
final class RecordingSink: DownloadSink {
    struct State {
        var heads: [DownloadHead] = []
        var bytes: [Int64: UInt8] = [:]
        var nextOffset: Int64?
        var generations = 0
        var retries: [DownloadRetry] = []
        var progress: [DownloadProgress] = []
        var complaints: [String] = []
    }

    let state: Guarded<State>
    let stopAt: Int64
    let canReplace: Bool
    let failAt: Int64?
    private let changed = ProgressSignal()

    /// - Parameter stored: bytes of the generation that the plan names, from offset 0.
    init(
        stored: [UInt8] = [],
        stopAt: Int64 = .max,
        canReplace: Bool = true,
        failAt: Int64? = nil
    ) {
        var state = State()
        for (offset, byte) in stored.enumerated() { state.bytes[Int64(offset)] = byte }
        self.state = Guarded(state)
        self.stopAt = stopAt
        self.canReplace = canReplace
        self.failAt = failAt
    }

    func didReceiveHead(_ head: DownloadHead) async throws(CacheError) {
        state.withLock { state in
            state.heads.append(head)
            switch head.kind {
            case .newGeneration(let start):
                state.generations += 1
                state.bytes = [:]
                state.nextOffset = start.offset
            case .continuing(let offset, _):
                state.nextOffset = offset
            case .notModified:
                state.nextOffset = nil
            }
        }
    }

    func write(_ chunk: BodyChunk, at offset: Int64) async throws(CacheError) {
        if let failAt, offset >= failAt { throw CacheError(.localStorage, "scripted") }
        state.withLock { state in
            if offset != state.nextOffset {
                state.complaints.append("\(offset) after \(String(describing: state.nextOffset))")
            }
            chunk.withUnsafeBytes { bytes in
                for (index, byte) in bytes.enumerated() {
                    let place = offset + Int64(index)
                    if let stored = state.bytes[place], stored != byte {
                        state.complaints.append("another byte at \(place)")
                    }
                    state.bytes[place] = byte
                }
            }
            state.nextOffset = offset + Int64(chunk.count)
        }
        changed.bump()
    }

    /// Returns when so many bytes are stored.
    func waitForBytes(_ count: Int) async {
        while true {
            let seen = changed.version
            if snapshot.bytes.count >= count { return }
            await changed.wait(after: seen)
        }
    }

    func storedRun(near offset: Int64) -> Range<Int64>? {
        let stored = snapshot.bytes
        guard let end = stored.keys.filter({ $0 < offset }).max() else { return nil }
        var start = end
        while stored[start - 1] != nil { start -= 1 }
        return start..<end + 1
    }

    func isStored(_ count: Int, of chunk: BodyChunk, at offset: Int64) async -> Bool {
        let stored = snapshot.bytes
        return chunk.withUnsafeBytes { bytes in
            bytes[..<count].enumerated().allSatisfy { index, byte in
                stored[offset + Int64(index)] == byte
            }
        }
    }

    func shouldStop(at offset: Int64) -> Bool { offset >= stopAt }
    func canReplaceGeneration() -> Bool { canReplace }
    func didProgress(_ progress: DownloadProgress) {
        state.withLock { $0.progress.append(progress) }
    }
    func willRetry(_ retry: DownloadRetry) { state.withLock { $0.retries.append(retry) } }

    var snapshot: State { state.withLock { $0 } }

    /// The bytes stored from `lower` on without a gap.
    func run(from lower: Int = 0) -> [UInt8] {
        let bytes = snapshot.bytes
        var result: [UInt8] = []
        var offset = Int64(lower)
        while let byte = bytes[offset] {
            result.append(byte)
            offset += 1
        }
        return result
    }
}
