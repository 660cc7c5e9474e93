import FoundationEssentials
import Testing

@testable import TieredCache

/// What a consumer that must not wait finds, without a task.
@Suite(.timeLimit(.minutes(1)))
struct ReadAttemptTests {
    private func bytes(_ finding: ReadAttempt.Finding) -> [UInt8]? {
        if case .bytes(let bytes) = finding { Array(bytes) } else { nil }
    }

    private func isAwaited(_ finding: ReadAttempt.Finding) -> Bool {
        if case .awaited = finding { true } else { false }
    }

    private func isNone(_ finding: ReadAttempt.Finding) -> Bool {
        if case .none = finding { true } else { false }
    }

    @Test("Bytes are awaited, come, and are taken in pieces")
    func pieces() {
        var attempt = ReadAttempt()
        #expect(isNone(attempt.take(at: 5, atMost: 2)))
        let number = attempt.begin(at: 5)
        #expect(attempt.isAwaited(at: 5) && !attempt.isAwaited(at: 6))
        #expect(isAwaited(attempt.take(at: 5, atMost: 2)))
        attempt.didEnd(number, with: .success(Data([1, 2, 3])))
        #expect(!attempt.isAwaited(at: 5))
        #expect(bytes(attempt.take(at: 5, atMost: 2)) == [1, 2])
        #expect(bytes(attempt.take(at: 7, atMost: 2)) == [3])
        #expect(isNone(attempt.take(at: 8, atMost: 2)))
    }

    @Test("The end is taken once, and so is an error")
    func ends() {
        var attempt = ReadAttempt()
        attempt.didEnd(attempt.begin(at: 0), with: .success(Data()))
        #expect(bytes(attempt.take(at: 0, atMost: 1)) == [])
        #expect(isNone(attempt.take(at: 0, atMost: 1)))
        attempt.didEnd(attempt.begin(at: 0), with: .failure(.readCancelled))
        guard case .failure(let error) = attempt.take(at: 0, atMost: 1) else {
            Issue.record("the error is lost")
            return
        }
        #expect(error.code == .cancelled)
        #expect(isNone(attempt.take(at: 0, atMost: 1)))
    }

    @Test("What comes for another offset, or after a stop, is dropped")
    func drops() {
        var attempt = ReadAttempt()
        let first = attempt.begin(at: 0)
        #expect(isNone(attempt.take(at: 9, atMost: 1)))
        attempt.didEnd(first, with: .success(Data([1])))
        #expect(isNone(attempt.take(at: 0, atMost: 1)))
        let second = attempt.begin(at: 0)
        attempt.didEnd(first, with: .success(Data([1])))
        #expect(attempt.isAwaited(at: 0))
        _ = attempt.stop()
        attempt.didEnd(second, with: .success(Data([1])))
        #expect(isNone(attempt.take(at: 0, atMost: 1)))
    }
}
