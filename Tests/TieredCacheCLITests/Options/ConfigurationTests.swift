import ArgumentParser
import Logging
import SystemPackage
import Testing
import TieredCache

@testable import TieredCacheCLI

@Suite("Options become a configuration", .timeLimit(.minutes(10)))
struct ConfigurationTests {
    @Test("What is given counts, the rest keeps its default")
    func configuration() throws {
        let arguments = [
            "get", "http://x/", "--directory", "/d", "--memory-limit", "1MiB", "--disk-limit",
            "2MiB", "--min-free", "0", "--retries", "2", "--timeout", "1.5", "--log-level", "debug",
        ]
        let command = try #require(RootCommand.parseAsRoot(arguments) as? GetCommand)
        let configuration = command.cache.configuration(origin: command.origin)
        #expect(configuration.path?.string == "/d")
        #expect(configuration.memoryLimit == 1 << 20)
        #expect(configuration.diskLimit == 2 << 20)
        #expect(configuration.minimumFreeDisk == 0)
        #expect(configuration.retries == 2)
        #expect(configuration.timeout == .milliseconds(1500))
        #expect(configuration.logger.logLevel == .debug)
        let plain = try #require(RootCommand.parseAsRoot(["list"]) as? ListCommand)
        let defaults = MediaCache.Configuration()
        #expect(plain.cache.configuration().path == defaults.path)
        #expect(plain.cache.configuration().memoryLimit == defaults.memoryLimit)
        #expect(plain.cache.configuration().minimumFreeDisk == nil)
    }
}
