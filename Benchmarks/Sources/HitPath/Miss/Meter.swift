import Foundation
import Glibc

/// Does an asynchronous operation, some at a time, and counts meanwhile changes of thread and
/// processor time.
final class Meter {
    private let width: Int
    private let isRepeating: Bool
    private let body: @Sendable (_ number: Int) async throws -> Void
    private var next = 0
    private var operations = 0
    private var switches = 0
    private var microseconds = 0

    /// - Parameters:
    ///   - isRepeating: whether every run has the same numbers rather than new ones.
    ///   - width: how many operations there are at a time.
    ///   - body: does the operation that has a number.
    init(
        isRepeating: Bool,
        width: Int = 6,
        _ body: @escaping @Sendable (_ number: Int) async throws -> Void
    ) {
        self.isRepeating = isRepeating
        self.width = width
        self.body = body
    }

    /// Context switches of the process per operation so far, the first run apart.
    var perOperation: Double { operations == 0 ? 0 : Double(switches) / Double(operations) }

    /// Microseconds of all threads per operation so far, the first run apart.
    var processorTime: Double {
        operations == 0 ? 0 : Double(microseconds) / Double(operations)
    }

    func run(_ count: Int) {
        let isFirst = next == 0
        let first = isRepeating ? 0 : next
        next += count
        let before = Self.usage()
        do {
            let (body, width) = (body, width)
            try Blocking.run { try await Self.run(first..<first + count, width, body) }
        } catch {
            fatalError("an operation failed: \(error)")
        }
        guard !isFirst else { return }
        operations += count
        let after = Self.usage()
        switches += after.switches - before.switches
        microseconds += after.microseconds - before.microseconds
    }

    private static func run(
        _ numbers: Range<Int>,
        _ width: Int,
        _ body: @escaping @Sendable (Int) async throws -> Void
    ) async throws {
        try await withThrowingTaskGroup { group in
            for lane in 0..<width {
                group.addTask {
                    for number in stride(
                        from: numbers.lowerBound + lane,
                        to: numbers.upperBound,
                        by: width
                    ) {
                        try await body(number)
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    /// What the process has used so far.
    private static func usage() -> (switches: Int, microseconds: Int) {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        let times = [usage.ru_utime, usage.ru_stime]
        return (
            usage.ru_nvcsw + usage.ru_nivcsw,
            times.reduce(0) { $0 + $1.tv_sec * 1_000_000 + Int($1.tv_usec) }
        )
    }
}

/// Runs asynchronous work from the harness, which is synchronous.
enum Blocking {
    static func run<Value: Sendable>(
        _ body: @escaping @Sendable () async throws -> Value
    ) throws -> Value {
        let done = DispatchSemaphore(value: 0)
        nonisolated(unsafe) var result: Result<Value, any Error>?
        Task.detached {
            do { result = .success(try await body()) } catch { result = .failure(error) }
            done.signal()
        }
        done.wait()
        guard let result else { throw BenchFailure("a task ended without a result") }
        return try result.get()
    }
}
