import FoundationEssentials
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// Owners that are silent beside readers that have little time.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct OwnerSilenceTests {
    /// A reader with a deadline, of which each sign of the owner gets a quarter and at most a second,
    /// see `Origins.plan`.
    private func reader(
        of path: String,
        _ guest: GuestFixture.Member,
        _ fixture: GuestFixture,
        deadline: Duration
    ) async throws -> CacheReader {
        var options = ReaderOptions()
        options.deadline = deadline
        return try await guest.cache.reader(for: fixture.request(path), options: options)
    }

    /// What a reader reads from the beginning; it asks when it opens.
    private func bytes(
        of path: String,
        count: Int,
        _ guest: GuestFixture.Member,
        _ fixture: GuestFixture,
        deadline: Duration
    ) async throws -> Data {
        let reader = try await reader(of: path, guest, fixture, deadline: deadline)
        var found = Data()
        while found.count < count {
            found += try await reader.read(at: Int64(found.count), count: count - found.count)
        }
        return found
    }

    @Test(arguments: [Duration.milliseconds(600), .seconds(10)])
    func inABodyItEndsOneDownload(deadline: Duration) async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/film", .fresh(100_000))
            fixture.origin.serve("/two", .fresh(100_000))
            let owner = try await fixture.join()
            let time = ManualTimeSource()
            let guest = try await fixture.join(time: time)
            await owner.service.stop()
            let bytes = try fixture.bytes("/film")
            let start = try fixture.beginning(of: "/film", count: 40_000)
            let listener = try SocketListener(in: fixture.directory)
            let gate = ThreadGate()
            async let answered: Void = onThread { try listener.answer(start) { gate.wait() } }
            let reader = try await reader(of: "/film", guest, fixture, deadline: deadline)
            #expect(try await reader.read(at: 39_000, count: 1000) == bytes[39_000..<40_000])
            async let rest = reader.read(at: 50_000, count: 1000)
            // It is asked whether it is there, and does not answer.
            await fixture.advance(time, by: min(deadline / 4, .seconds(1)), untilAsked: "/film")
            // Time stands still: the origin is asked at once.
            #expect(try await rest == bytes[50_000..<51_000])
            gate.open()
            try await answered
            // The silence may have been the origin's: the next download asks the owner.
            let service = await fixture.listenAgain(owner)
            #expect(try await guest.cache.data(for: fixture.request("/two")).count == 100_000)
            let two = try await owner.cache.entry(for: fixture.request("/two"))
            #expect(two?.isComplete == true)
            await service.stop()
        }
    }

    @Test func beforeAResponseItEndsOneDownload() async throws {
        try await GuestFixture.run { fixture in
            // What the origin breaks off goes on at the origin.
            fixture.origin.serve("/film", .fresh(100_000), .first(1, .cut(after: 40_000)))
            fixture.origin.serve("/two", .fresh(100_000))
            let owner = try await fixture.join()
            let time = ManualTimeSource()
            // Without a wait before the next attempt no more time passes than the owner has.
            let guest = try await fixture.join(time: time, jitter: 0) { $0.retries = 3 }
            await owner.service.stop()
            let listener = try SocketListener(in: fixture.directory)
            let (isAsked, gate) = (ThreadGate(), ThreadGate())
            async let answered: Void = onThread {
                try listener.answer(Array("HTTP/1.1 102 Processing\r\n\r\n".utf8)) {
                    isAsked.open()
                    gate.wait()
                }
            }
            defer { gate.open() }
            // Half of it is less than what counts for all downloads.
            let deadline = Duration.milliseconds(1900)
            async let film = bytes(
                of: "/film",
                count: 100_000,
                guest,
                fixture,
                deadline: deadline
            )
            // The guest has set its alarm.
            try await onThread { isAsked.wait() }
            await fixture.advance(time, by: deadline / 4, untilAsked: "/film")
            let expected = try fixture.bytes("/film")
            #expect(try await film == expected)
            gate.open()
            try await answered
            let service = await fixture.listenAgain(owner)
            #expect(try await guest.cache.data(for: fixture.request("/two")).count == 100_000)
            let two = try await owner.cache.entry(for: fixture.request("/two"))
            #expect(two?.isComplete == true)
            await service.stop()
        }
    }

    @Test func aFirstReadFarAheadHasTimeForTheOrigin() async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/film", .fresh(8_000_000))
            let owner = try await fixture.join()
            let time = ManualTimeSource()
            let guest = try await fixture.join(time: time)
            await owner.service.stop()
            let listener = try SocketListener(in: fixture.directory)
            let deadline = Duration.milliseconds(600)
            let reading = Task {
                try await reader(of: "/film", guest, fixture, deadline: deadline)
                    .read(at: 5_000_000, count: 1000)
            }
            // The download of the opening, and that of the read; neither gets an answer.
            let gate = ThreadGate()
            let answered = Task {
                try await withThrowingTaskGroup { group in
                    for _ in 0..<2 {
                        let isAsked = ThreadGate()
                        group.addTask {
                            try await onThread {
                                try listener.answer([]) {
                                    isAsked.open()
                                    gate.wait()
                                }
                            }
                        }
                        try await onThread { isAsked.wait() }
                        time.advance(by: deadline / 4)
                    }
                    try await group.waitForAll()
                }
            }
            let expected = try fixture.bytes("/film")[5_000_000..<5_001_000]
            #expect(try await reading.value == expected)
            gate.open()
            try await answered.value
        }
    }

    @Test func shortWaitsMakeASecondTogether() async throws {
        try await GuestFixture.run { fixture in
            for number in 0..<5 { fixture.origin.serve("/\(number)", .fresh(1000)) }
            let owner = try await fixture.join()
            let time = ManualTimeSource()
            let guest = try await fixture.join(time: time)
            await owner.service.stop()
            let listener = try SocketListener(in: fixture.directory)
            for number in 0..<4 {
                let (isAsked, gate) = (ThreadGate(), ThreadGate())
                async let answered: Void = onThread {
                    try listener.answer([]) {
                        isAsked.open()
                        gate.wait()
                    }
                }
                let deadline = Duration.milliseconds(600)
                async let found = bytes(
                    of: "/\(number)",
                    count: 1000,
                    guest,
                    fixture,
                    deadline: deadline
                )
                try await onThread { isAsked.wait() }
                time.advance(by: deadline / 2)
                let expected = try fixture.bytes("/\(number)")
                #expect(try await found == expected)
                gate.open()
                try await answered
            }
            // Time stands still, and no request waits for the owner.
            #expect(try await guest.cache.data(for: fixture.request("/4")) == fixture.bytes("/4"))
        }
    }
}
