import HTTPCaching
import Testing

@Suite("From where a host can be reached", .timeLimit(.minutes(1)))
struct TargetURIReachTests {
    private func reach(_ host: String) throws -> TargetURI.Reach {
        try TargetURI("http://\(host)/").reach
    }

    @Test(
        "This machine in all its forms",
        arguments: [
            "127.0.0.1", "127.1", "127.255.255.254", "2130706433", "0x7f000001", "0x7f.1",
            "0177.0.0.1", "0", "0.0.0.0", "localhost", "LOCALHOST", "localhost.", "a.localhost",
            "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
            "[::127.0.0.1]", "[64:ff9b::7f00:1]",
        ]
    )
    func machine(host: String) throws {
        #expect(try reach(host) == .machine)
        #expect(try reach(host + ":8080") == .machine)
    }

    @Test(
        "The next cable",
        arguments: [
            "169.254.169.254", "2852039166", "[fe80::1]", "[febf::1]", "[::ffff:169.254.1.1]",
        ]
    )
    func link(host: String) throws {
        #expect(try reach(host) == .link)
    }

    @Test(
        "Anything else",
        arguments: [
            "a.example", "127.evil.example", "localhost.evil.example", "notlocalhost", "128.0.0.1",
            "169.253.1.1", "10.0.0.1", "192.168.1.1", "4294967296", "1.2.3.4.5", "256.0.0.1",
            "[2001:db8::1]", "[fec0::1]", "[::ffff:8.8.8.8]", "[64:ff9b::808:808]", "0x",
            "08.1.1.1",
        ]
    )
    func anywhere(host: String) throws {
        #expect(try reach(host) == .anywhere)
    }
}
