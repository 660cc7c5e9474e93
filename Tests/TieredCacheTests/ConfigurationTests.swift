import SystemPackage
import Testing

@testable import TieredCache

@Suite("Configuration", .timeLimit(.minutes(10)))
struct ConfigurationTests {
    @Test
    func `Limits are on by default`() throws {
        let configuration = MediaCache.Configuration(directory: nil)
        try configuration.validate()
        #expect(configuration.memoryLimit == 64 * 1_048_576)
        #expect(configuration.diskLimit == 2 * 1_073_741_824)
        #expect(configuration.chosenDiskLimit == nil)
        #expect(configuration.maximumDownloads == 6)
        #expect(configuration.maximumDownloadsPerHost == 6)
        #expect(configuration.path == nil)
    }

    @Test
    func `The directory follows XDG and HOME, absolute paths alone`() {
        func directory(_ environment: [String: String]) -> FilePath? {
            MediaCache.Configuration.defaultPath { environment[$0] }
        }
        let home = "/home/u"
        #expect(directory(["HOME": home]) == "/home/u/.cache/tieredcache")
        #expect(directory(["HOME": home, "XDG_CACHE_HOME": "/x"]) == "/x/tieredcache")
        #expect(directory(["HOME": home, "XDG_CACHE_HOME": ""]) == "/home/u/.cache/tieredcache")
        #expect(directory(["HOME": home, "XDG_CACHE_HOME": "x"]) == "/home/u/.cache/tieredcache")
        #expect(directory(["HOME": "home"]) == nil)
        #expect(directory([:]) == nil)
    }

    static let faults: [(String, @Sendable (inout MediaCache.Configuration) -> Void)] = [
        ("memoryLimit is 0", { $0.memoryLimit = 0 }),
        ("diskLimit is -1", { $0.diskLimit = -1 }),
        ("minimumFreeDisk is -5", { $0.minimumFreeDisk = -5 }),
        ("maximumDownloads is 0", { $0.maximumDownloads = 0 }),
        ("maximumDownloadsPerHost is -1", { $0.maximumDownloadsPerHost = -1 }),
        ("retries is 0", { $0.retries = 0 }),
        ("timeout is 0.0 seconds", { $0.timeout = .zero }),
        ("connectTimeout is -1.0 seconds", { $0.connectTimeout = .seconds(-1) }),
        ("applicationLifetime is 0.0 seconds", { $0.applicationLifetime = .zero }),
        ("directory is ''", { $0.path = "" }),
    ]

    @Test(arguments: faults.indices)
    func `A value that makes no sense is refused, and named`(index: Int) throws {
        let (fault, change) = Self.faults[index]
        var configuration = MediaCache.Configuration(path: "/tmp/x")
        change(&configuration)
        let error = try #require(throws: CacheError.self) { try configuration.validate() }
        #expect(error.code == .invalidArgument)
        #expect(error.description.contains(fault), "\(error)")
    }

    @Test
    func `A limit that is set does not follow the volume`() throws {
        var configuration = MediaCache.Configuration(directory: nil)
        configuration.diskLimit = 5
        configuration.minimumFreeDisk = 0
        try configuration.validate()
        #expect(configuration.chosenDiskLimit == 5)
    }
}
