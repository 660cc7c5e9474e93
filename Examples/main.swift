// Twelve programs of a page each, in one executable, as README.md lists them.

import TieredCache

#if canImport(Glibc)
@preconcurrency import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// One of the programs.
protocol Example {
    /// The name, and the arguments.
    static var usage: String { get }

    /// Does the work, and prints what it did.
    ///
    /// - Throws: ``UsageError`` for arguments that are no use.
    static func run(_ arguments: [String]) async throws
}

/// The arguments were others than the program takes.
struct UsageError: Error {}

var examples: [any Example.Type] = [
    Gallery.self, Film.self, OfflineHLS.self, ResumableDownload.self, BackgroundDownload.self,
    CachingProxy.self, CachedSession.self, ScriptedTest.self, LiveStatistics.self,
    CustomTransport.self, KeyRules.self,
]
#if AsyncHTTPClient
examples.append(CachedClient.self)
#endif

func complain(_ text: String, exitCode: Int32) -> Never {
    fputs("\(text)\n", stderr)
    exit(exitCode)
}

// A reader at the other end of a pipe gets each line at once.
setvbuf(stdout, nil, Int32(_IOLBF), 0)
let arguments = Array(CommandLine.arguments.dropFirst())
let named = examples.first { example in
    example.usage.split(separator: " ").first.map(String.init) == arguments.first
}
guard let example = named else {
    let usages = examples.map { example in example.usage }
    complain("usage: " + usages.joined(separator: "\n       "), exitCode: 64)
}
do {
    try await example.run(Array(arguments.dropFirst()))
} catch is UsageError {
    complain("usage: \(example.usage)", exitCode: 64)
} catch {
    complain("\(error)", exitCode: 1)
}
