import Testing

@testable import TieredCache

@Suite("How long the way to an origin is", .timeLimit(.minutes(10)))
struct PathEstimateTests {
    private let block: Int64 = 65_536

    /// Waits for `count` blocks one after the other, each of which comes in two halves.
    private func waits(_ count: Int, latency: Duration, half: Duration) -> PathEstimate {
        var path = PathEstimate()
        var now = MonotonicTime(nanoseconds: 0)
        for index in 0..<Int64(count) {
            let range = index * block..<(index + 1) * block
            path.didAsk(for: range, now: now)
            path.didWait(for: range.lowerBound)
            now = now.advanced(by: latency)
            path.didReceive(range.lowerBound..<range.lowerBound + block / 2, now: now)
            now = now.advanced(by: half)
            path.didReceive(range.lowerBound + block / 2..<range.upperBound, now: now)
        }
        return path
    }

    @Test("A short way is worth a quarter of what was read in a row")
    func short() {
        let path = waits(20, latency: .milliseconds(29), half: .milliseconds(1))
        #expect(path.readAheadLimit(forRun: 4 << 20, isSeek: false) == 1 << 20)
    }

    @Test("A long way is worth twice what it holds, and no more than was read in a row")
    func long() {
        // 32 KiB in 10 ms, over 100 ms: 640 KiB.
        let path = waits(3, latency: .milliseconds(100), half: .milliseconds(10))
        #expect(path.readAheadLimit(forRun: 1 << 20, isSeek: false) == 655_360)
        #expect(path.readAheadLimit(forRun: 256 << 10, isSeek: false) == 256 << 10)
        #expect(path.readAheadLimit(forRun: 16 << 20, isSeek: false) == 4 << 20)
    }

    @Test("A reader that goes here and there has to read two megabytes in a row first")
    func seeking() {
        let path = waits(3, latency: .milliseconds(100), half: .milliseconds(10))
        for run: Int64 in [0, 65_536, 1 << 20, 2 << 20] {
            #expect(path.readAheadLimit(forRun: run, isSeek: true) == run / 4)
        }
        let more = path.readAheadLimit(forRun: 2 << 20 + 65_536, isSeek: true)
        #expect(more == 512 << 10 + 65_536)
        #expect(path.readAheadLimit(forRun: 3 << 20, isSeek: true) == 3 << 18)
        #expect(path.readAheadLimit(forRun: 16 << 20, isSeek: true) == 4 << 20)
    }

    @Test("A slow way is worth no more for being long")
    func slow() {
        let path = waits(9, latency: .milliseconds(40), half: .milliseconds(100))
        #expect(path.readAheadLimit(forRun: 4 << 20, isSeek: false) == 1 << 20)
    }

    @Test("Nothing is concluded from two waits, nor where one of several was short")
    func doubtful() {
        let few = waits(2, latency: .milliseconds(100), half: .milliseconds(1))
        #expect(few.readAheadLimit(forRun: 4 << 20, isSeek: false) == 1 << 20)
        var mixed = waits(9, latency: .milliseconds(100), half: .milliseconds(1))
        let later = MonotonicTime(nanoseconds: 1 << 40)
        mixed.didAsk(for: 0..<block, now: later)
        mixed.didWait(for: 0)
        mixed.didReceive(0..<block, now: later.advanced(by: .milliseconds(2)))
        #expect(mixed.readAheadLimit(forRun: 4 << 20, isSeek: false) == 1 << 20)
    }

    @Test("What is read late, because the consumer is slow, tells nothing of the way")
    func slowConsumer() {
        var path = PathEstimate()
        for second in 0..<Int64(20) {
            let range = second * block..<(second + 1) * block
            let asked = MonotonicTime(nanoseconds: second * 1_000_000_000)
            path.didAsk(for: range, now: asked)
            path.didReceive(range, now: asked.advanced(by: .seconds(1)))
        }
        #expect(path.readAheadLimit(forRun: 4 << 20, isSeek: false) == 1 << 20)
    }

    @Test("Numbers without bound do not overflow")
    func extremes() {
        var path = waits(3, latency: .seconds(3600), half: .zero)
        path.didReceive(1 << 40..<1 << 41, now: MonotonicTime(nanoseconds: .max))
        #expect(path.readAheadLimit(forRun: .max, isSeek: false) == .max)
        #expect(path.readAheadLimit(forRun: 0, isSeek: false) == 0)
    }
}
