import HTTPCaching
import HTTPTypes
import TestParts
import Testing

@testable import TieredCache

#if canImport(Glibc)
import Glibc
#endif

@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct TimeSourceTests {
    @Test("A clock beyond the year 2262 stands still there, and one before 1677 as well")
    func farClocks() {
        func read(_ seconds: Int) -> WallTime {
            let time = timespec(tv_sec: seconds, tv_nsec: 999_999_999)
            return WallTime(nanoseconds: SystemTimeSource.nanoseconds(time))
        }
        #expect(read(1).nanoseconds == 1_999_999_999)
        #expect(read(-1).nanoseconds == -1)
        // 2263-01-01, and the last second that fits.
        #expect(read(9_246_182_400) == WallTime(nanoseconds: .max))
        #expect(read(9_223_372_036) == WallTime(nanoseconds: .max))
        #expect(read(9_223_372_035).nanoseconds == 9_223_372_035_999_999_999)
        #expect(read(.max) == WallTime(nanoseconds: .max))
        #expect(read(-9_300_000_000).seconds < -9_000_000_000)
        #expect(read(.min).seconds < -9_000_000_000)
    }

    @Test("Distances between instants saturate")
    func distances() {
        let (first, last) = (MonotonicTime(nanoseconds: .min), MonotonicTime(nanoseconds: .max))
        #expect(first.duration(to: last) == .nanoseconds(Int64.max))
        #expect(last.duration(to: first) == .nanoseconds(Int64.min))
        #expect(last.advanced(by: .seconds(1)) == last)
    }

    @Test("Dates are written and ages counted at the end of the calendar")
    func theEndOfTheCalendar() {
        let end = WallTime(nanoseconds: .max)
        #expect(HTTPDate.format(end) == "Fri, 11 Apr 2262 23:47:16 GMT")
        let head = StoredResponse(
            status: 200,
            fields: [.cacheControl: "max-age=99999999999"],
            requestTime: WallTime(nanoseconds: .min),
            responseTime: end,
            origin: .init(url: "http://a.example/")
        )
        #expect(head.fieldsForReuse(now: end)[.age] != nil)
        #expect(end.advanced(by: .seconds(Int64.max)) == end)
    }
}
