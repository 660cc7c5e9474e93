import Logging
import Synchronization
import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// How a program finds the proxy of a directory, and what it does not believe.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct ServingFileTests {
    @Test func aProxyIsFoundWhileItServes() async throws {
        try await ProxyFixture.run { fixture in
            let directory = fixture.files.appending("cache")
            #expect(try await find(in: directory) == nil)
            let file = try ServingFile(of: fixture.proxy, in: directory)
            let path = directory.appending("SERVING").string
            var status = stat()
            #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
            #expect(try await find(in: directory) == fixture.base)
            file.withdraw()
            #expect(try await find(in: directory) == nil)
            #expect(access(path, F_OK) != 0)
        }
    }

    @Test func whatACrashLeavesIsNotBelieved() async throws {
        let files = try TemporaryDirectory("serving-file")
        try await ProxyFixture.run { fixture in
            // Kept from its end, which would remove it.
            _ = try ServingFile(of: fixture.proxy, in: files.path)
            #expect(try await find(in: files.path) == fixture.base)
        }
        #expect(try await find(in: files.path) == nil)
        // Another proxy has taken the port since: it does not know the token.
        try await ProxyFixture.run { fixture in
            let token = "sixteen-letters-"
            let identity = ProxyIdentity(port: fixture.proxy.port, token: token)
            try files.write(identity.text, to: "SERVING")
            #expect(chmod(files.appending("SERVING").string, 0o600) == 0)
            #expect(try await find(in: files.path) == nil)
        }
    }

    @Test(arguments: [
        "", "tieredcache-proxy 1\nport 9\n", "tieredcache-proxy 2\nport 9\ntoken x\n",
    ])
    func aTornFileIsNone(_ text: String) async throws {
        let files = try TemporaryDirectory("serving-file")
        try files.write(text, to: "SERVING")
        #expect(try await find(in: files.path) == nil)
    }

    @Test func aServerThatAnswersEverythingIsNoProxy() async throws {
        let origin = try await ScriptedOrigin.start()
        origin.serve("/sixteen-letters-", .generated(length: 10, seed: 1))
        let port = try #require(origin.url("").split(separator: ":").last.flatMap { Int($0) })
        let address = ProxyAddress(port: port, token: "sixteen-letters-")
        let answers = try await onThread { RunningProxy.answers(at: address) }
        #expect(!answers)
        await origin.stop()
        let proof = "HTTP/1.1 308 Permanent Redirect\r\nLocation: \(address.base)\r\n\r\n"
        #expect(RunningProxy.isProof(proof, of: address))
        for other in [
            proof.replacing("308", with: "200"), proof.replacing("-/", with: "_/"), "HTTP/1.1 308 ",
            "HTTP/1.1 200 OK\r\n\r\n" + proof,
        ] {
            #expect(!RunningProxy.isProof(other, of: address), "\(other)")
        }
    }

    @Test func aProxyThatIsUsedDoesNotEnd() async throws {
        try await ProxyFixture.run { fixture in
            let directory = fixture.files.appending("cache")
            let file = try ServingFile(of: fixture.proxy, in: directory)
            var user = try await onThread { RunningProxy.find(in: directory) }
            #expect(user != nil)
            #expect(!file.withdraw(unlessUsed: true))
            user = nil
            #expect(file.withdraw(unlessUsed: true))
            #expect(try await find(in: directory) == nil)
        }
    }

    @Test func oneThatEndsRemovesNoFileOfAnother() async throws {
        try await ProxyFixture.run { fixture in
            let directory = fixture.files.appending("cache")
            let older = try ServingFile(of: fixture.proxy, in: directory)
            let newer = try ServingFile(of: fixture.proxy, in: directory)
            older.withdraw()
            #expect(try await find(in: directory) == fixture.base)
            newer.withdraw()
            #expect(try await find(in: directory) == nil)
        }
    }

    @Test func unusedCountsFromTheLastConnection() async throws {
        let time = ManualTimeSource()
        let setTime: (inout ProxySettings) -> Void = { $0.timeSource = time }
        try await ProxyFixture.run(setTime) { fixture in
            let proxy = fixture.proxy
            let began = time.monotonicTime()
            let hasEnded = Flag()
            let waiting = Task {
                try await proxy.untilUnused(for: .seconds(80))
                hasEnded.set()
            }
            // Passes ten seconds, or as many as it takes until the wait has ended.
            func tick() async {
                while time.sleeperCount == 0, !hasEnded.isSet { await Task.yield() }
                time.advanceToNextDeadline()
                while time.sleeperCount == 0, !hasEnded.isSet { await Task.yield() }
            }
            for _ in 0..<7 { await tick() }
            let port = proxy.port
            let answer = try await onThread {
                let connection = try RawConnection(port: port)
                try connection.send(
                    "GET / HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: close\r\n\r\n"
                )
                return try connection.receiveResponse()
            }
            #expect(answer.status == 404)
            // 10 s later it sees the connection, and 80 s have to go by from there.
            for _ in 0..<8 { await tick() }
            #expect(!hasEnded.isSet)
            while !hasEnded.isSet { await tick() }
            try await waiting.value
            let elapsed = began.duration(to: time.monotonicTime())
            #expect(elapsed >= .seconds(160), "\(elapsed)")
        }
    }

    @Test func theTableOfTheKernelNamesUsers() {
        let table = """
              sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid
               0: 0100007F:0FA0 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000  0
               1: 00000000:0FA0 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0  0
               2: 0100007F:0FA0 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1001  0
               3: 0100007F:1FA0 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1002  0
            """
        #expect(RunningProxy.listeners(in: table, port: 4000) == [1000, 0])
        #expect(RunningProxy.listeners(in: table, port: 4001).isEmpty)
        #expect(RunningProxy.listeners(in: "", port: 4000).isEmpty)
        // A listener of IPv6 takes connections of IPv4.
        let own = "0: 0100007F:0FA0 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0"
        let all = String(repeating: "0", count: 32)
        let foreign = "0: \(all):0FA0 \(all):0000 0A 00000000:00000000 00:00000000 00000000 1001 0"
        #expect(RunningProxy.isListener(1000, on: 4000, in: [own, ""]))
        #expect(!RunningProxy.isListener(1000, on: 4000, in: [own, foreign]))
        #expect(!RunningProxy.isListener(1000, on: 4000, in: ["", foreign]))
        #expect(!RunningProxy.isListener(1000, on: 4000, in: ["", ""]))
    }

    /// The base of the proxy that is found; the question blocks.
    private func find(in directory: FilePath) async throws -> String? {
        try await onThread { RunningProxy.find(in: directory)?.base }
    }
}

private final class Flag: Sendable {
    private let value = Atomic(false)

    var isSet: Bool { value.load(ordering: .acquiring) }

    func set() { value.store(true, ordering: .releasing) }
}
