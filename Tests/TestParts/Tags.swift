public import Testing

/// What decides when a test runs, see `scripts/tests.py`.
extension Tag {
    /// It starts a real player: `make check-players`.
    @Tag public static var player: Self
    /// It starts another server: `make check-servers`.
    @Tag public static var server: Self
    /// It takes long: `make check-long`, and not `make test`.
    @Tag public static var long: Self
    /// It has a few of its cases in `make test`, and all in `make check-long`: ``TestCases``.
    @Tag public static var seeded: Self
    /// It measures the machine, loads all of it, or counts what its whole process does, and so runs
    /// after others, by itself.
    @Tag public static var alone: Self
    /// What it sees depends on how much time the machine has for it: sockets, processes, the
    /// system's clock. Its suite runs once more where it failed.
    @Tag public static var realTime: Self
}
