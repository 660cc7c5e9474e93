import HTTPTypes
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A machine that loses its address and gets it again: the real program, rtnetlink, and nginx, in a
/// network namespace of their own.
@Suite("A lost address", .tags(.realTime), .timeLimit(.minutes(10)))
struct AddressLossTests {
    /// What is done in the namespace; `$1` is the place for files, `$2` the program.
    ///
    /// Without its address nothing tells the program that its connection is dead: no reset comes,
    /// and its timeout is an hour. It ends the exchange because the kernel says so, waits for the
    /// network, and goes on where the bytes stopped. It has an attempt to spare, as the kernel may
    /// refuse a connection before it has said that there is no address any more.
    private static let script = """
        set -eu
        cd "$1"
        ip link set lo up || exit 77
        ip link add v0 type veth peer name v1 || exit 77
        ip link set v0 up
        ip link set v1 up
        ip address add 192.0.2.1/24 dev v0
        nginx -p "$1" -e stderr -c "$1/nginx.conf"
        trap 'kill "$(cat nginx.pid)"' EXIT
        "$2" get http://192.0.2.1:8080/film --output film --json --timeout 3600 --retries 3 \\
            --directory cache > report &
        # First: a program that opens the directory before it would own it instead.
        until [ -n "$(ss -Htn state established dport = 8080)" ]; do kill -0 $!; done
        until "$2" list --json --directory cache | grep -q '"held":[1-9]'; do
            kill -0 $!
        done
        ip address delete 192.0.2.1/24 dev v0
        until [ -z "$(ss -Htn state established dport = 8080)" ]; do kill -0 $!; done
        ip address add 192.0.2.1/24 dev v0
        status=0
        wait $! || status=$?
        cat report
        exit $status
        """

    private static let configuration = """
        user root;
        worker_processes 1;
        pid nginx.pid;
        events { worker_connections 64; }
        http {
            access_log access.log;
            client_body_temp_path t1;
            proxy_temp_path t2;
            fastcgi_temp_path t3;
            uwsgi_temp_path t4;
            scgi_temp_path t5;
            server {
                listen 8080;
                location / { root files; limit_rate 512k; add_header Cache-Control max-age=60; }
            }
        }
        """

    private static func isThere(_ program: String) -> Bool {
        ["/usr/bin/", "/usr/sbin/", "/sbin/", "/bin/"].contains {
            access($0 + program, X_OK) == 0
        }
    }

    @Test(
        "The dead connection is given up at once, and the download goes on with the address",
        .tags(.server),
        .enabled(
            if: geteuid() == 0 && ["unshare", "ip", "ss", "nginx"].allSatisfy(isThere),
            "needs root, unshare(1), ip(8), ss(8) and nginx"
        )
    )
    func addressLoss() async throws {
        let files = try TemporaryDirectory("tieredcache-network")
        try files.makeDirectory("files")
        let film = GeneratedBody(seed: 9, length: 3 << 20)
        try files.write(film, to: "files/film")
        try files.write(Self.configuration, to: "nginx.conf")
        let place = Workplace(origin: ScriptedOrigin(), files: files)
        let outcome = try await place.runPlain(
            ["-n", "sh", "-c", Self.script, "sh", files.path.string, Workplace.program.string],
            program: "/usr/bin/unshare"
        )
        // A container's root may have no right to make one, a kernel no such device.
        guard outcome.exitCode != 77, !outcome.error.contains("unshare: ") else {
            print("no network namespace of its own here: \(outcome.error)")
            return
        }
        #expect(outcome.exitCode == 0, "\(outcome.error)")
        #expect(outcome.json.integer("bytes") == 3 << 20)
        #expect(try files.file("film", equals: film))
        // In one process, in as many requests as there were addresses.
        let log = try files.read("access.log").split(separator: "\n")
        #expect(log.map { $0.contains("\" 200 ") } == [true, false], "\(log)")
        #expect(log.last?.contains("\" 206 ") == true)
    }
}
