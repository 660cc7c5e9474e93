import TestParts
import Testing
import TieredCache

@testable import TieredCacheAgent

@Suite("When an agent leaves", .tags(.realTime), .timeLimit(.minutes(5)))
struct IdleWatchTests {
    private func at(_ seconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: seconds * 1_000_000_000)
    }

    @Test("It leaves when it has been idle for the whole time, and not before")
    func idle() {
        var watch = IdleWatch(after: .seconds(30), now: at(0))
        let observe = { (watch: inout IdleWatch, busy: Bool, clients: Int, time: Int64) in
            watch.observe(isBusy: busy, clients: clients, now: at(time))
        }
        #expect(!observe(&watch, false, 0, 29))
        #expect(!observe(&watch, true, 0, 40))
        #expect(!observe(&watch, false, 0, 69))
        // A client has come and gone.
        #expect(!observe(&watch, false, 1, 70))
        #expect(!observe(&watch, false, 1, 99))
        #expect(observe(&watch, false, 1, 100))
    }

    @Test("Answers to wrong secrets go out ten a second over all connections")
    func wrongSecrets() {
        var secrets = WrongSecrets()
        #expect(secrets.delay(now: at(0)) == .seconds(1))
        #expect(secrets.delay(now: at(0)) == .milliseconds(1100))
        for _ in 0..<9998 { _ = secrets.delay(now: at(0)) }
        #expect(secrets.delay(now: at(0)) == .seconds(1001))
        #expect(secrets.delay(now: at(2000)) == .seconds(1))
    }

    @Test("A secret is compared as a whole")
    func secret() {
        let secret = AgentSecret("s3cret", time: SystemTimeSource())
        #expect(secret.allows("s3cret"))
        for token in [nil, "", "s3cre", "s3cret ", "S3cret", "s3cret\0"] {
            #expect(!secret.allows(token))
        }
    }
}
