import Foundation

/// How many of the cases of a seeded or exhaustive test run.
public enum TestCases {
    /// Whether all run: `TIEREDCACHE_TEST_CASES=all`, as in `make check-long`.
    public static let all =
        ProcessInfo.processInfo.environment["TIEREDCACHE_TEST_CASES"] == "all"

    /// The first `count` of them, or all.
    public static func few<Cases: Collection>(_ count: Int, of cases: Cases) -> [Cases.Element] {
        Array(all ? cases[...] : cases.prefix(count))
    }
}
