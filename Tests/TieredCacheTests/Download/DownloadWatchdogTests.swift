import FoundationEssentials
import HTTPCaching
import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Silence ends an exchange; a consumer that takes its time does not.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct DownloadWatchdogTests {
    private static let timeout = Duration.seconds(30)

    /// Watches an exchange that lasts until it is cancelled or told to end.
    private func watch(
        _ watchdog: DownloadWatchdog,
        until gate: OriginGate
    ) -> Task<Bool, Never> {
        Task {
            await watchdog.watch {
                await gate.wait()
                return Task.isCancelled
            }
        }
    }

    @Test("While nothing is asked of the origin, no time is too long")
    func paused() async {
        let (time, gate) = (ManualTimeSource(), OriginGate())
        let watchdog = DownloadWatchdog(timeout: Self.timeout, time: time)
        let exchange = watch(watchdog, until: gate)
        for _ in 0..<100 {
            await time.waitForSleepers()
            time.advance(by: Self.timeout)
        }
        gate.open()
        #expect(await exchange.value == false)
        #expect(watchdog.decision == nil)
    }

    @Test("The time counts from the last question, not from the beginning")
    func fromTheLastQuestion() async {
        let (time, gate) = (ManualTimeSource(), OriginGate())
        let watchdog = DownloadWatchdog(timeout: Self.timeout, time: time)
        let exchange = watch(watchdog, until: gate)
        for _ in 0..<10 {
            await time.waitForSleepers()
            watchdog.arm()
            time.advance(by: .seconds(29))
            watchdog.disarm()
            time.advance(by: .seconds(100))
        }
        #expect(watchdog.decision == nil)
        await time.waitForSleepers()
        watchdog.arm()
        time.advance(by: .seconds(29))
        await time.waitForSleepers()
        #expect(watchdog.decision == nil)
        time.advance(by: Self.timeout)
        #expect(await exchange.value)
        #expect(watchdog.decision == .silent)
    }

    @Test(
        "An exchange that said how it is ended is ended so, in the caller's task",
        arguments: [true, false]
    )
    func attached(isAttachedInTime: Bool) async {
        let (time, gate) = (ManualTimeSource(), OriginGate())
        let watchdog = DownloadWatchdog(timeout: Self.timeout, time: time)
        let exchange = Task {
            await watchdog.watchAttached {
                if isAttachedInTime { watchdog.attach { gate.open() } }
                watchdog.arm()
                if !isAttachedInTime {
                    await time.waitForSleepers()
                    time.advance(by: Self.timeout)
                    while watchdog.decision == nil { await Task.yield() }
                    watchdog.attach { gate.open() }
                }
                await gate.wait()
                return Task.isCancelled
            }
        }
        if isAttachedInTime {
            await time.waitForSleepers()
            time.advance(by: Self.timeout)
            while watchdog.decision == nil {
                await Task.yield()
                // Armed after the first look had begun: another follows.
                time.advance(by: Self.timeout)
            }
        }
        #expect(await exchange.value == false)
        #expect(watchdog.decision == .silent)
    }

    @Test("An owner that answers each second has all the time, and one that does not has a second")
    func owner() async {
        for answers in [40, 5, 0] {
            let (time, gate) = (ManualTimeSource(), OriginGate())
            let watchdog = DownloadWatchdog(timeout: Self.timeout, time: time)
            let asked = Guarded(0)
            let owner = OwnerPresence(patience: .seconds(1)) { owner in
                let number = asked.withLock { count in
                    count += 1
                    return count
                }
                if number < answers { owner.didAnswer() }
            }
            let exchange = Task {
                await watchdog.watchAttached {
                    watchdog.arm()
                    watchdog.watch(owner)
                    watchdog.attach { gate.open() }
                    await gate.wait()
                }
            }
            // The first answer is that to the request.
            if answers > 0 { owner.didAnswer() }
            var seconds = 0
            while watchdog.decision == nil {
                guard time.timeToNextDeadline == .seconds(1) else {
                    await Task.yield()
                    continue
                }
                time.advance(by: .seconds(1))
                seconds += 1
            }
            await exchange.value
            #expect(watchdog.decision == .silent && owner.isSilent)
            #expect(owner.hasAnswered == (answers > 0))
            #expect(seconds == min(answers + 1, 30), "\(answers)")
        }
    }

    @Test("After the exchange no alarm is left")
    func over() async {
        let time = ManualTimeSource()
        let watchdog = DownloadWatchdog(timeout: Self.timeout, time: time)
        let isSet = await watchdog.watchAttached {
            await time.waitForSleepers()
            return time.sleeperCount == 1
        }
        #expect(isSet)
        #expect(time.sleeperCount == 0)
    }

    // MARK: The engine

    private func withFilm(
        _ script: OriginScript,
        _ body: (MediaCache, CacheFixture, ManualTimeSource) async throws -> Void
    ) async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", Self.film, script)
            fixture.origin.serve("/page", .generated(length: 1000, cacheControl: "max-age=60"))
            let time = ManualTimeSource(wall: SystemTimeSource().wallTime())
            let change = { (configuration: inout MediaCache.Configuration) in
                configuration.maximumDownloads = 1
                configuration.timeSource = time
                configuration.timeout = Self.timeout
            }
            try await fixture.withCache(change) { cache in try await body(cache, fixture, time) }
        }
    }

    private static let film = OriginResource.generated(
        length: 48 << 20,
        cacheControl: "max-age=60"
    )
    private static let half: Int64 = 24 << 20

    @Test("A consumer that pauses for an hour holds no slot and goes on, on the same connection")
    func pausedConsumer() async throws {
        let gate = OriginGate()
        try await withFilm(.first(1, .wait(for: gate, after: Self.half))) { cache, fixture, time in
            let reading = try await cache.response(for: fixture.request("/film"))
            var bytes = try #require(try await reading.body.source.next())
            async let page = cache.data(for: fixture.request("/page"))
            time.advance(by: .seconds(3))
            gate.open()
            // The only slot is free, so the transfer has stalled.
            #expect(try await page.count == 1000)
            #expect(cache.engine.transfers.queue.snapshot().count(.stalled) == 1)
            for _ in 0..<120 {
                await time.waitForSleepers()
                time.advance(by: Self.timeout)
            }
            #expect(cache.engine.transfers.queue.snapshot().count(.stalled) == 1)
            bytes.append(try await reading.body.collect())
            #expect(firstDifference(bytes, Self.film.allBytes) == nil)
            #expect(fixture.origin.log.exchanges(for: "/film").map(\.status) == [200])
        }
    }

    @Test("A silent origin is given up though its only consumer has stopped reading")
    func silentOrigin() async throws {
        try await withFilm(.first(1, .stall(after: Self.half))) { cache, fixture, time in
            let reading = try await cache.response(for: fixture.request("/film"))
            var bytes = Data()
            // So far that the transfer waits for the origin and not for its reader.
            while bytes.count < Self.half {
                bytes.append(try #require(try await reading.body.source.next()))
            }
            let isOver = Guarded(false)
            let clock = Task {
                while true {
                    await time.waitForSleepers()
                    guard !isOver.withLock({ $0 }) else { return }
                    time.advance(by: Self.timeout)
                }
            }
            await fixture.origin.waitUntil { $0.openResponses == 0 }
            isOver.withLock { $0 = true }
            let alarm = Task { try await time.sleep(for: Self.timeout) }
            await clock.value
            alarm.cancel()
            // The slot is free again, the reader is told, and the next request goes on where the
            // bytes stopped.
            #expect(try await cache.data(for: fixture.request("/page")).count == 1000)
            let error = await #expect(throws: CacheError.self) {
                _ = try await reading.body.collect()
            }
            #expect(error?.code == .timedOut)
            let whole = try await cache.data(for: fixture.request("/film"))
            #expect(firstDifference(whole, Self.film.allBytes) == nil)
            let exchanges = fixture.origin.log.exchanges(for: "/film")
            #expect(exchanges.map(\.status) == [200, 206])
            #expect(exchanges.last?.fields[.range]?.hasPrefix("bytes=\(Self.half)-") == true)
        }
    }
}
