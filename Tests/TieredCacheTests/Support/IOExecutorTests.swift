import Dispatch
import Logging
import Testing

@testable import TieredCache

@Suite("The threads that may block", .timeLimit(.minutes(10)))
struct IOExecutorTests {
    @Test("Where the machine has no more threads, those that started do the work")
    func fewerThreads() async {
        let asked = Guarded(0)
        let executor = IOExecutor(threads: 4, name: "few") { _, body in
            let number = asked.withLock { count in
                count += 1
                return count
            }
            guard number == 3 else { return false }
            DispatchQueue(label: "few").async { body() }
            return true
        }
        #expect(asked.withLock { $0 } == 4)
        for number in 0..<10 {
            let answer = await executor.run { number }
            #expect(answer == number)
        }
    }

    private final class Machine: Sendable {
        let asked = Guarded(0)
        let hasThreads = Guarded(false)
        let hasRun = Guarded(false)

        func start(_ body: @escaping @Sendable () -> Void) -> Bool {
            asked.withLock { $0 += 1 }
            guard hasThreads.withLock({ $0 }) else { return false }
            DispatchQueue(label: "late").async { [self] in
                hasRun.withLock { $0 = true }
                body()
            }
            return true
        }
    }

    @Test("Where the machine has no thread at all, work is done elsewhere until it has one")
    func noThread() async {
        let machine = Machine()
        let executor = IOExecutor(threads: 2, name: "none") { _, body in machine.start(body) }
        #expect(machine.asked.withLock { $0 } == 2)
        for number in 0..<5 {
            let answer = await executor.run { number }
            #expect(answer == number)
        }
        #expect(machine.asked.withLock { $0 } >= 7)
        #expect(executor.isWithoutThreads)
        machine.hasThreads.withLock { $0 = true }
        #expect(await executor.run { machine.hasRun.withLock { $0 } })
        #expect(!executor.isWithoutThreads)
        let count = machine.asked.withLock { $0 }
        #expect(await executor.run { 5 } == 5)
        #expect(machine.asked.withLock { $0 } == count)
    }

    @Test("A cache that can start no thread says so", arguments: [true, false])
    func said(hasThreads: Bool) async throws {
        let lines = Guarded<[String]>([])
        var configuration = MediaCache.Configuration()
        configuration.path = nil
        configuration.logger = Logger(label: "threads") { _ in
            ListeningLogHandler { event, _ in lines.withLock { $0.append("\(event.message)") } }
        }
        var parts = EngineParts()
        if !hasThreads {
            parts.makeExecutor = { name in IOExecutor(threads: 2, name: name) { _, _ in false } }
        }
        let cache = try MediaCache(configuration, parts: parts)
        await cache.shutdown()
        let said = lines.withLock { $0.contains { $0.contains("no thread can be started") } }
        #expect(said == !hasThreads)
    }
}
