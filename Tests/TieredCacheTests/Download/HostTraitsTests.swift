import HTTPCaching
import Testing

@testable import TieredCache

@Suite(.timeLimit(.minutes(10)))
struct HostTraitsTests {
    private func at(_ seconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: seconds * 1_000_000_000)
    }

    @Test("What an origin cannot do is remembered for an hour, and adds up")
    func remembers() throws {
        var memory = HostTraits()
        let (one, other) = (try TargetURI("http://a/").origin, try TargetURI("http://a:81/").origin)
        memory.remember([], of: one, now: at(0))
        #expect(memory.limits(of: one, now: at(0)) == [])
        memory.remember(.withoutRanges, of: one, now: at(0))
        memory.remember(.withoutSegments, of: one, now: at(10))
        #expect(memory.limits(of: one, now: at(11)) == [.withoutRanges, .withoutSegments])
        #expect(memory.limits(of: other, now: at(11)) == [])
        #expect(memory.limits(of: one, now: at(3610)) == [])
    }

    @Test("Its size is bounded; the oldest is forgotten")
    func bounded() throws {
        var memory = HostTraits()
        let origins = try (0...HostTraits.capacity).map { try TargetURI("http://h\($0)/").origin }
        for (index, origin) in origins.enumerated() {
            memory.remember(.withoutRanges, of: origin, now: at(Int64(index)))
        }
        let known = origins.filter { !memory.limits(of: $0, now: at(300)).isEmpty }
        #expect(known == Array(origins.dropFirst()))
    }

    @Test("Permanent redirects are remembered for a day, and forgotten when they are gone")
    func redirects() throws {
        var memory = PermanentRedirects()
        let (old, new) = (try TargetURI("http://a/1"), try TargetURI("http://b/2"))
        memory.remember(new, of: old, now: at(0))
        #expect(memory.target(of: old, now: at(1)) == new)
        #expect(memory.target(of: new, now: at(1)) == nil)
        // Being used does not make it last longer.
        memory.remember(new, of: old, now: at(86_000))
        #expect(memory.target(of: old, now: at(86_400)) == nil)
        memory.remember(new, of: old, now: at(86_400))
        memory.remember(nil, of: old, now: at(86_401))
        #expect(memory.target(of: old, now: at(86_402)) == nil)
    }
}
