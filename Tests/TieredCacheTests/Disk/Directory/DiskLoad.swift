import Foundation
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Four threads that do all that a store can do, each a thing at a time, to small entries and a few
/// huge ones.
final class DiskLoad: Sendable {
    /// What a thread does after each small body that it stores, by chance.
    enum Operation: CaseIterable {
        case find, findWithoutBlocking, lease, bodyPath, remove
        case replace, freshen, fillUnknownLength, fillWithinPromise, fillHuge
        case pin, succeed, quarantine, releaseQuarantine
        case wait, persistUses, trim, setLimit

        /// How often it is chosen, of ``sum`` times.
        var weight: Int {
            switch self {
            case .find: 170
            case .findWithoutBlocking: 70
            case .remove, .replace, .fillHuge: 25
            case .freshen, .pin, .wait: 15
            case .lease, .fillUnknownLength, .fillWithinPromise: 10
            case .succeed: 6
            case .bodyPath, .persistUses, .quarantine, .releaseQuarantine: 4
            case .trim: 2
            case .setLimit: 1
            }
        }

        static let sum = UInt64(allCases.reduce(0) { $0 + $1.weight })

        static func choose(_ generator: inout SeededGenerator) -> Self {
            var rest = Int(generator.next() % sum)
            for operation in allCases {
                rest -= operation.weight
                if rest < 0 { return operation }
            }
            preconditionFailure("the weights have another sum")
        }
    }

    static let threads = 4
    private static let huge = (0..<3).map { bytes(2 << 20, seed: UInt64($0 + 1)) }
    /// How many bodies a small name may have; the metadata say which.
    private static let versions: UInt64 = 3

    let failures = Failures()
    let watch = ProgressWatch()
    private let disk: TestDisk
    private let options: DiskStoreOptions
    /// How many small entries there are.
    private let count: Int
    /// Closed and opened again now and then.
    private let current: Guarded<DiskStore>
    private let finished = Guarded<Set<Operation>>([])

    init(_ disk: TestDisk, _ options: DiskStoreOptions, count: Int) throws {
        self.disk = disk
        self.options = options
        self.count = count
        current = Guarded(try disk.open(options))
    }

    var store: DiskStore { current.withLock { $0 } }
    /// The operations that have been done, at least once.
    var done: Set<Operation> { finished.withLock { $0 } }

    func run(thread: Int) {
        var generator = SeededGenerator(seed: UInt64(thread) &* 13 &+ 3)
        let share = count / Self.threads
        for number in 0..<share {
            let new = thread * share + number
            attempt { () throws(CacheError) in
                try store.store(Self.body(new, 0), for: Self.name(new), metadata: [0])
            }
            let operation = Operation.choose(&generator)
            attempt { () throws(CacheError) in
                try perform(operation, store, &generator)
                finished.withLock { _ = $0.insert(operation) }
            }
            attempt { () throws(CacheError) in try performRare(thread, number, of: share) }
            watch.didProgress()
        }
    }

    private func attempt(_ body: () throws(CacheError) -> Void) {
        do throws(CacheError) {
            try body()
        } catch {
            // The store that it has may be closed meanwhile, by another thread.
            if error.code != .shutDown && !error.isOfFullCache { failures.add("\(error)") }
        }
    }

    private static func name(_ number: Int) -> CacheKey { key("small \(number)") }

    private static func body(_ number: Int, _ version: UInt64) -> [UInt8] {
        bytes(
            100 + (number + Int(version) * 700) % 1900,
            seed: UInt64(number) * versions + version
        )
    }

    // MARK: Operations

    /// What takes long, or changes all: a few times in a run.
    private func performRare(_ thread: Int, _ number: Int, of share: Int) throws(CacheError) {
        let isQuarterly = number % (share / 4) == share / 8
        switch thread {
        case 0 where isQuarterly: try reopen()
        case 1 where number == share / 8: try store.removeAll()
        case 2 where number == share / 2:
            _ = try store.verify(repair: true) { finding in
                let isDamage = finding.kind != .quarantined && finding.kind != .unaccounted
                if isDamage { failures.add("\(finding)") }
            }
        case 3 where isQuarterly: _ = try store.list()
        default: return
        }
    }

    private func reopen() throws(CacheError) {
        store.close()
        while true {
            let next = try disk.open(options)
            // Else another thread is still writing to the old one.
            guard next.access.canWrite else { continue }
            let old = current.withLock { store in
                defer { store = next }
                return store
            }
            // Not released under the lock.
            return withExtendedLifetime(old) {}
        }
    }

    private func perform(
        _ operation: Operation,
        _ store: DiskStore,
        _ generator: inout SeededGenerator
    ) throws(CacheError) {
        let number = Int(generator.next() % UInt64(count))
        let name = Self.name(number)
        let version = generator.next() % Self.versions
        switch operation {
        case .find:
            if let entry = try store.entry(for: name) { check(entry, number) }
        case .findWithoutBlocking:
            if case .ready(let entry?) = store.entryWithoutBlocking(for: name) {
                check(entry, number)
            }
        case .lease: try lease(store, number, &generator)
        case .bodyPath: _ = try store.bodyPath(for: name)
        case .remove: try store.remove(name)
        case .replace:
            try store.store(Self.body(number, version), for: name, metadata: [UInt8(version)])
        case .freshen: try freshen(store, number, &generator)
        case .fillUnknownLength: try fillUnknownLength(store, number, version)
        case .fillWithinPromise: try fillWithinPromise(store, number, version)
        case .fillHuge: try fillHuge(store, number % Self.huge.count)
        case .pin: try store.entry(for: name)?.setPinned(generator.next() % 8 == 0)
        case .succeed: try succeed(store, number, version, choice: generator.next() % 3)
        case .quarantine:
            if let entry = try store.entry(for: name) { _ = try store.quarantine(entry) }
        case .releaseQuarantine: store.releaseQuarantine(of: name)
        case .wait: disk.time.advance(by: .seconds(30))
        case .persistUses: store.persistUses()
        case .trim: try store.trim(to: 80 << 20)
        case .setLimit: try store.setLimit((90 + Int64(generator.next() % 6)) << 20)
        }
    }

    /// Replaces the metadata, by others of any length.
    private func freshen(
        _ store: DiskStore,
        _ number: Int,
        _ generator: inout SeededGenerator
    ) throws(CacheError) {
        guard let entry = try store.entry(for: Self.name(number)) else { return }
        let rest = bytes(Int(generator.next() % 3))
        try entry.updateMetadata(Array(entry.metadata.prefix(1)) + rest)
    }

    private func fillUnknownLength(
        _ store: DiskStore,
        _ number: Int,
        _ version: UInt64
    ) throws(CacheError) {
        let body = Self.body(number, version)
        let entry = try store.makeEntry(
            for: Self.name(number),
            metadata: [UInt8(version)],
            completeLength: nil
        )
        let writer = try entry.beginWriting(at: 0)
        try writer.write(body.prefix(50))
        try writer.write(body.dropFirst(50))
        try writer.finish()
        check(entry, number)
    }

    private func fillWithinPromise(
        _ store: DiskStore,
        _ number: Int,
        _ version: UInt64
    ) throws(CacheError) {
        let (name, body) = (Self.name(number), Self.body(number, version))
        let promise = try store.promiseRoom(Int64(body.count), for: name)
        defer { promise.end() }
        let entry = try store.makeEntry(
            for: name,
            metadata: [UInt8(version)],
            completeLength: Int64(body.count)
        )
        let writer = try entry.beginWriting(at: 0, within: promise)
        try writer.write(body)
        writer.end()
        check(entry, number)
    }

    /// Brings the next generation of a pinned entry, which then takes the name, is set aside, or is
    /// let go of.
    private func succeed(
        _ store: DiskStore,
        _ number: Int,
        _ version: UInt64,
        choice: UInt64
    ) throws(CacheError) {
        let (name, body) = (Self.name(number), Self.body(number, version))
        guard let old = try store.entry(for: name) else { return }
        try old.setPinned(true)
        let entry = try store.makeEntry(
            for: name,
            metadata: [UInt8(version)],
            completeLength: Int64(body.count),
            class: [],
            succession: DiskSuccession(awaitsDecision: true)
        )
        try entry.beginWriting(at: 0).write(body)
        switch choice {
        case 0: try entry.takeName()
        case 1: _ = try store.quarantine(entry)
        default: break
        }
        check(entry, number)
        check(old, number)
        try store.entry(for: name)?.setPinned(false)
    }

    /// Reads a huge body, or goes on filling it: a few blocks a step.
    private func fillHuge(_ store: DiskStore, _ number: Int) throws(CacheError) {
        let (name, body) = (key("huge \(number)"), Self.huge[number])
        guard let entry = try store.entry(for: name) else {
            _ = try store.makeEntry(for: name, metadata: [], completeLength: Int64(body.count))
            return
        }
        guard let gap = entry.nextGap(in: 0..<Int64(body.count)) else {
            if !body.holds(entry.read(body.count), at: 0) {
                failures.add("wrong bytes of huge \(number)")
            }
            return
        }
        let end = min(gap.upperBound, gap.lowerBound + 262_144)
        let writer = try entry.beginWriting(at: gap.lowerBound)
        try writer.write(body[Int(gap.lowerBound)..<Int(end)])
    }

    // MARK: Bytes

    private func lease(
        _ store: DiskStore,
        _ number: Int,
        _ generator: inout SeededGenerator
    ) throws(CacheError) {
        guard let entry = try store.entry(for: Self.name(number)) else { return }
        let body = check(entry, number)
        let isRight = entry.lease(0..<Int64(body.count)) { leased in
            var bytes = [UInt8](repeating: 0xEE, count: leased.place.count)
            let count = bytes.withUnsafeMutableBytes {
                pread(leased.descriptor, $0.baseAddress, $0.count, off_t(leased.place.lowerBound))
            }
            return count == bytes.count && body.holds(bytes, at: Int(leased.range.lowerBound))
        }
        if isRight == false { failures.add("wrong bytes are sent") }
    }

    /// - Returns: what the body is, whole.
    @discardableResult
    private func check(_ entry: DiskEntry, _ number: Int) -> [UInt8] {
        let body = Self.body(number, UInt64(entry.metadata.first ?? 0))
        // A repair may have found it while it was being replaced; fewer bytes are a miss, not a
        // fault.
        if !body.holds(entry.read(body.count), at: 0) { failures.add("wrong bytes of \(number)") }
        return body
    }
}
