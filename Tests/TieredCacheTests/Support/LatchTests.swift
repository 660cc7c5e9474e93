import Testing

@testable import TieredCache

@Suite("Latch", .timeLimit(.minutes(10)))
struct LatchTests {
    @Test
    func `The first outcome wins and stays`() async throws {
        let latch = Latch<Int>()
        #expect(latch.outcome == nil)
        #expect(latch.complete(with: .success(1)))
        #expect(!latch.complete(with: .success(2)))
        #expect(try await latch.wait()?.get() == 1)
        #expect(try latch.outcome?.get() == 1)
    }

    @Test
    func `An outcome that came early reaches a cancelled task too`() async throws {
        let latch = Latch<Int>()
        latch.complete(with: .success(1))
        let task = Task { try await latch.wait()?.get() }
        task.cancel()
        #expect(try await task.value == 1)
    }

    @Test
    func `A cancelled waiter leaves the others alone`() async throws {
        let latch = Latch<Int>()
        let abandoned = Latch<Void>()
        let tasks = (0..<3).map { _ in
            Task {
                try await latch.wait { abandoned.complete(with: .success(())) }?.get()
            }
        }
        tasks[1].cancel()
        #expect(try await tasks[1].value == nil)
        latch.complete(with: .success(7))
        #expect(try await tasks[0].value == 7)
        #expect(try await tasks[2].value == 7)
    }

    @Test
    func `The last waiter to be cancelled is told so`() async throws {
        let latch = Latch<Int>()
        let abandoned = Latch<Void>()
        let task = Task {
            try await latch.wait { abandoned.complete(with: .success(())) }?.get()
        }
        task.cancel()
        #expect(try await task.value == nil)
        #expect(abandoned.outcome != nil)
    }
}
