/// The two programs that fetch, each into nothing that is there already.
struct Contenders {
    let program: String
    let place: Place
    let origin: Origin

    /// Fetches into a cache directory.
    func prefetch(_ file: String) throws -> Run {
        defer { place.removeDirectory("cache") }
        return try Run.of([
            program, "prefetch", origin.url(file), "--directory", place.path("cache"),
            "--disk-limit", "4GiB", "--min-free", "0",
        ])
    }

    /// Fetches into a file.
    func curl(_ file: String) throws -> Run {
        defer { place.removeFile("out") }
        return try Run.of(["curl", "-s", "-f", "-o", place.path("out"), origin.url(file)])
    }
}
