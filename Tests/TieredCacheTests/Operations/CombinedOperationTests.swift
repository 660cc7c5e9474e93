import Synchronization
import Testing

@testable import TieredCache

@Suite("Combined operation", .timeLimit(.minutes(10)))
struct CombinedOperationTests {
    private typealias Operation = CombinedOperation<String, Int>

    @Test
    func `A lookup that answers is all that happens`() async throws {
        let operation = Operation {
            () throws(CacheError) in
            .complete("held")
        } download: { _, _ in
            Issue.record("downloaded what was held")
            return ""
        }
        #expect(try await operation.value() == "held")
        #expect(try await operation.value() == "held")
    }

    @Test
    func `What the lookup leaves over is downloaded, once for all that wait`() async throws {
        let downloads = Atomic(0)
        let operation = Operation {
            () throws(CacheError) in
            .incomplete(42)
        } download: { remainder, _ in
            downloads.add(1, ordering: .relaxed)
            return "fetched \(remainder)"
        }
        let outputs = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<20 { group.addTask { try await operation.value() } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(outputs == ["fetched 42"])
        #expect(downloads.load(ordering: .relaxed) == 1)
    }

    @Test
    func `Errors of either part are the operation's`() async {
        let lookup = Operation {
            () throws(CacheError) in
            throw CacheError(.notCached, "no")
        } download: { _, _ in
            ""
        }
        #expect(await code { _ = try await lookup.value() } == .notCached)
        let download = Operation {
            () throws(CacheError) in
            .incomplete(1)
        } download: { _, _ throws(CacheError) in
            throw CacheError(.originFailed, "no")
        }
        #expect(await code { _ = try await download.value() } == .originFailed)
    }

    @Test
    func `A cancel before the start wins`() async {
        let operation = Operation {
            () throws(CacheError) in
            Issue.record("looked up after the cancel")
            return .complete("")
        } download: { _, _ in
            ""
        }
        operation.cancel()
        operation.start()
        #expect(await code { _ = try await operation.value() } == .cancelled)
    }

    @Test
    func `A cancel while downloading completes at once and cancels the work`() async throws {
        let (started, seen) = (Latch<Void>(), Latch<Void>())
        let operation = Operation {
            () throws(CacheError) in
            .incomplete(1)
        } download: { _, _ in
            started.complete(with: .success(()))
            _ = await Latch<Void>().wait()
            seen.complete(with: .success(()))
            return "too late"
        }
        operation.start()
        _ = await started.wait()
        operation.cancel()
        #expect(await code { _ = try await operation.value() } == .cancelled)
        _ = await seen.wait()
        #expect(await code { _ = try await operation.value() } == .cancelled)
    }

    @Test
    func `The operation outlives one waiter and ends with the last`() async throws {
        let (started, cancelled) = (Latch<Void>(), Latch<Void>())
        let operation = Operation {
            () throws(CacheError) in
            .incomplete(1)
        } download: { _, _ in
            started.complete(with: .success(()))
            let never = await Latch<Void>().wait()
            cancelled.complete(with: .success(()))
            return "\(never == nil)"
        }
        let tasks = (0..<2).map { _ in Task { await code { _ = try await operation.value() } } }
        _ = await started.wait()
        // Both must wait before one of them is cancelled.
        while operation.waiters < 2 { await Task.yield() }
        tasks[0].cancel()
        #expect(await tasks[0].value == .cancelled)
        #expect(cancelled.outcome == nil)
        tasks[1].cancel()
        #expect(await tasks[1].value == .cancelled)
        _ = await cancelled.wait()
    }

    @Test
    func `The priority reaches the work, whenever it is set`() async throws {
        let seen = Guarded<[RequestPriority]>([])
        let (started, release) = (Latch<Void>(), Latch<Void>())
        let operation = Operation(priority: .prefetch) {
            () throws(CacheError) in
            .incomplete(1)
        } download: { _, context in
            context.forwardPriority { priority in seen.withLock { $0.append(priority) } }
            started.complete(with: .success(()))
            _ = await release.wait()
            return ""
        }
        operation.priority = .normal
        operation.start()
        _ = await started.wait()
        operation.priority = .playing
        operation.priority = .playing
        #expect(seen.withLock(\.self) == [.normal, .playing])
        release.complete(with: .success(()))
        _ = try await operation.value()
        operation.priority = .background
        #expect(seen.withLock(\.self) == [.normal, .playing])
        #expect(operation.priority == .background)
    }

    @Test
    func `A subscription follows the operation's priority`() async throws {
        let queue = QueueBench()
        let work = ControlledWork()
        let operation = Operation(priority: .normal) {
            () throws(CacheError) in
            .incomplete(1)
        } download: { _, context throws(CacheError) in
            let subscription = queue.join("a", work)
            context.forwardPriority(to: subscription, knowing: .normal)
            try await subscription.value()
            return "done"
        }
        operation.start()
        let transfer = try await work.context()
        operation.priority = .playing
        while transfer.priority != .playing { await Task.yield() }
        work.finish()
        #expect(try await operation.value() == "done")
    }

    @Test(arguments: [true, false])
    func `The work of a cancelled operation can be waited for`(isDownload: Bool) async {
        let (started, release) = (Latch<Void>(), Latch<Void>())
        let hasEnded = Guarded(false)
        // The work does not notice that it is cancelled.
        let work: @Sendable () async -> Void = {
            started.complete(with: .success(()))
            while release.outcome == nil { await Task.yield() }
            hasEnded.withLock { $0 = true }
        }
        let operation = Operation {
            () throws(CacheError) in
            if !isDownload { await work() }
            return .incomplete(1)
        } download: { _, _ in
            await work()
            return "too late"
        }
        operation.start()
        _ = await started.wait()
        operation.cancel()
        #expect(await code { _ = try await operation.value() } == .cancelled)
        let waiting = Task {
            await operation.waitForWork()
            return hasEnded.withLock(\.self)
        }
        // It waits all the same.
        waiting.cancel()
        release.complete(with: .success(()))
        #expect(await waiting.value)
        await operation.waitForWork()
    }

    @Test
    func `An operation that never started has no work to wait for`() async {
        let operation = Operation {
            () throws(CacheError) in
            .complete("")
        } download: { _, _ in
            ""
        }
        await operation.waitForWork()
        operation.cancel()
        await operation.waitForWork()
    }
}
