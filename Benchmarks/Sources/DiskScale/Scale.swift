import Foundation
import SystemPackage
@_spi(Benchmarks) import TieredCache

/// The steps of the report, in order: each leaves what the next one needs.
struct Scale {
    let entries: Int
    let root: FilePath

    private let body = [UInt8](repeating: 7, count: 4000)
    private let metadata = [UInt8](repeating: 1, count: 200)

    private func key(_ number: Int) -> CacheKey {
        CacheKey(explicit: "https://media.example/title/\(number)/video/1080p/segment.m4s")
    }

    private func open(dormant: Bool = true) throws -> DiskStore {
        var options = DiskStoreOptions(root: root, limit: 1 << 40)
        options.minimumFree = 0
        if !dormant { options.maximumHeadMemory = 0 }
        return try DiskStore(options)
    }

    func run() throws {
        try storing()
        try writingFirst()
        try opening("the directory read through", removingSnapshot: true)
        try opening("the snapshot read", removingSnapshot: false)
        try hits()
        try verifying()
        try evicting()
    }

    private func store(_ store: DiskStore, _ range: Range<Int>) throws {
        for number in range {
            try body.withUnsafeBytes {
                _ = try store.store($0, for: key(number), metadata: metadata)
            }
        }
    }

    // MARK: Steps

    private func storing() throws {
        let store = try open()
        let half = entries / 2
        let one = try seconds { try self.store(store, 0..<half) }
        report("stores of 4 KiB, one thread", Self.rate(half, one))
        let two = seconds { [self] in
            DispatchQueue.concurrentPerform(iterations: 2) { part in
                let quarter = (entries - half) / 2
                let start = half + part * quarter
                let end = part == 0 ? start + quarter : entries
                do { try self.store(store, start..<end) } catch { fatalError("\(error)") }
            }
        }
        report("stores of 4 KiB, two threads", Self.rate(entries - half, two))
        let closing = seconds { store.close() }
        report("closing, with the snapshot", Self.time(closing))
    }

    /// As after a crash: no snapshot, and nothing read yet.
    private func writingFirst() throws {
        var times: [Double] = []
        for number in 0..<9 {
            if unlink(root.appending("INDEX").string) != 0, number == 0 {
                report("there was no snapshot to remove", "")
            }
            let store = try open()
            let key = CacheKey(explicit: "written first \(number)")
            times.append(
                try seconds {
                    _ = try body.withUnsafeBytes {
                        try store.store($0, for: key, metadata: metadata)
                    }
                }
            )
            try store.remove(key)
            store.close()
        }
        times.sort()
        report("first write after a crash, \(entries) entries", Self.time(times[4]))
        report("the slowest of nine", Self.time(times[8]))
    }

    private func opening(_ name: String, removingSnapshot: Bool) throws {
        if removingSnapshot, unlink(root.appending("INDEX").string) != 0 {
            report("there was no snapshot to remove", "")
        }
        var first: [Double] = []
        var kept: DiskStore?
        for number in 0..<9 {
            let key = key(number * entries / 9)
            kept?.close()
            first.append(
                try seconds {
                    kept = try open()
                    try Self.expectHit(kept, key)
                }
            )
        }
        report("first hit after opening, \(entries) entries", Self.time(first.sorted()[4]))
        kept?.close()
        let before = residentBytes()
        let owner = try open()
        let loading = try seconds { try owner.loadIndex() }
        let usage = try owner.usage()
        precondition(usage.entries == entries, "\(usage.entries) entries are known")
        report("index, \(name)", Self.time(loading))
        let grown = Double(residentBytes() - before) / Double(entries)
        report("memory for it", String(format: "%.0f bytes per entry", grown))
        owner.close()
    }

    private static func expectHit(_ store: DiskStore?, _ key: CacheKey) throws {
        guard let entry = try store?.entry(for: key) else { fatalError("\(key) is a miss") }
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = buffer.withUnsafeMutableBytes { entry.read(at: 0, into: $0) }
        precondition(count == 4000, "\(count) bytes of \(key)")
    }

    private func hits() throws {
        let store = try open()
        try store.loadIndex()
        var state: UInt64 = 42
        var times: [Double] = []
        for _ in 0..<50_000 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let key = key(Int(state >> 33) % entries)
            times.append(try seconds { try Self.expectHit(store, key) })
        }
        times.sort()
        for (name, part) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)] {
            let time = times[Int(Double(times.count - 1) * part)]
            report("hit of 4 KiB at random, pages as they are, \(name)", Self.time(time))
        }
    }

    /// The same entries twice, descriptors closed in between: what the first read costs more.
    private func verifying() throws {
        let size = 64 << 10
        let count = 2000
        let large = [UInt8](repeating: 3, count: size)
        let keys = (0..<count).map { CacheKey(explicit: "verified \($0)") }
        let writer = try open()
        for key in keys {
            try large.withUnsafeBytes { _ = try writer.store($0, for: key, metadata: []) }
        }
        writer.close()
        let store = try open(dormant: false)
        try store.loadIndex()
        var buffer = [UInt8](repeating: 0, count: size)
        let pass = {
            try seconds {
                for key in keys {
                    let entry = try store.entry(for: key)
                    let read = buffer.withUnsafeMutableBytes { entry?.read(at: 0, into: $0) }
                    precondition(read == size)
                }
            } / Double(count)
        }
        let (first, second) = (try pass(), try pass())
        report("first read of 64 KiB, verified", Self.time(first))
        report("second read, descriptor closed meanwhile", Self.time(second))
        for key in keys { try store.remove(key) }
    }

    private func evicting() throws {
        let store = try open()
        let before = try store.usage()
        let time = try seconds { _ = try store.trim(to: before.bytes / 2) }
        let gone = before.entries - (try store.usage().entries)
        report("evictions", Self.rate(gone, time))
        let clearing = try seconds { try store.removeAll() }
        report("removing the others", Self.rate(before.entries - gone, clearing))
    }

    // MARK: Figures

    private static func rate(_ count: Int, _ seconds: Double) -> String {
        String(format: "%.0f per second", Double(count) / seconds)
    }

    private static func time(_ seconds: Double) -> String {
        if seconds < 1e-3 { return String(format: "%.2f µs", seconds * 1e6) }
        if seconds < 1 { return String(format: "%.2f ms", seconds * 1e3) }
        return String(format: "%.2f s", seconds)
    }
}
