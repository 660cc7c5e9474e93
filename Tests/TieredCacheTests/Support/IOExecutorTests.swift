import Dispatch
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
}
