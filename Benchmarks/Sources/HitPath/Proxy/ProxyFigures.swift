import Foundation
import Glibc

/// What the proxies cost beside a request made directly: time, and memory.
enum ProxyFigures {
    /// Measures and prints.
    ///
    /// - Returns: whether all of them are within their targets.
    static func report(where isWanted: (String) -> Bool) throws -> Bool {
        let measurements: [(name: String, run: (BenchServers) throws -> Figure)] = [
            ("first byte of a cold URL, beyond a direct request", firstByte),
            ("100 segments of 500 KiB in a row, nothing stored, to direct requests", segments),
            ("memory growth while 1 GiB passes", passing),
            ("resident while 16 clients evict all the time", evicting),
            ("each of 1,000 idle players connected", idle),
            ("each of 100 players paused in a film", paused),
        ]
        let wanted = measurements.filter { isWanted("proxy: \($0.name)") }
        guard !wanted.isEmpty, let program = BenchServers.findProgram() else { return true }
        let servers = try BenchServers(program: program)
        defer { servers.stop() }
        BenchTools.raiseDescriptorLimit()
        print("\n| figure | measured | at most | |\n| --- | --- | --- | --- |")
        var isWithin = true
        for measurement in wanted {
            let figure = try measurement.run(servers)
            isWithin = isWithin && figure.value <= figure.limit
            let decision = figure.value <= figure.limit ? "yes" : "NO"
            let (value, limit) = (text(figure.value, figure.unit), text(figure.limit, figure.unit))
            print("| \(measurement.name) | \(value) | \(limit) | \(decision) |")
        }
        return isWithin
    }

    private struct Figure {
        var value: Double
        var limit: Double
        var unit: String
    }

    private static func text(_ value: Double, _ unit: String) -> String {
        String(format: "%.2f", value) + " " + unit
    }

    /// The middle of the differences between cold requests, each beside a direct one.
    private static func firstByte(_ servers: BenchServers) throws -> Figure {
        let (process, base) = try servers.serve("first")
        defer { process.terminate() }
        let (port, path) = try split(base)
        let ours = try BenchConnection(port: port)
        let direct = try BenchConnection(port: servers.originPort)
        var differences: [Double] = []
        for number in 0..<210 {
            let name = "/cold/\(number)"
            let mine = try time {
                try ours.ask("\(path)http/127.0.0.1:\(servers.originPort)\(name)", port: port)
                try ours.receiveFirstByte()
            }
            _ = ours.drop(65_535)
            let its = try time {
                try direct.ask(name, port: servers.originPort)
                try direct.receiveFirstByte()
            }
            _ = direct.drop(65_535)
            // The first ones meet code that was never run and a connection that is not open.
            if number >= 10 { differences.append(mine - its) }
        }
        return Figure(value: differences.median, limit: 0.3, unit: "ms")
    }

    /// The middle of five ratios, each of a hundred segments that no round before has asked for.
    private static func segments(_ servers: BenchServers) throws -> Figure {
        let (process, base) = try servers.serve("segments")
        defer { process.terminate() }
        let (port, path) = try split(base)
        let ours = try BenchConnection(port: port)
        let direct = try BenchConnection(port: servers.originPort)
        let play = { (connection: BenchConnection, target: String, port: Int, round: Int) in
            try time {
                for number in 0..<100 {
                    try connection.ask("\(target)/segments/\(round)-\(number)", port: port)
                    try connection.receiveFirstByte()
                    let left = BenchServers.segment - 1
                    guard connection.drop(left) == left else { throw BenchFailure("a cut") }
                }
            }
        }
        let ratios = try (0..<6).map { round in
            try play(ours, "\(path)http/127.0.0.1:\(servers.originPort)", port, round)
                / play(direct, "", servers.originPort, round)
        }
        return Figure(value: Array(ratios.dropFirst()).median, limit: 1.1, unit: "times")
    }

    /// A reverse proxy with 8 MiB of memory tier and 64 MiB of disk, asked for 2,000 files of 64
    /// KiB.
    private static func evicting(_ servers: BenchServers) throws -> Figure {
        let origin = "http://127.0.0.1:\(servers.originPort)"
        let limits = ["--memory-limit", "8MiB", "--disk-limit", "64MiB"]
        let (process, base) = try servers.serve("evicting", ["--origin", origin] + limits)
        defer { process.terminate() }
        for url in [base, "http://127.0.0.1:\(servers.cachePort)/"] {
            let script = try servers.script(amongst: 2000)
            _ = try Wrk.run(url + "cold/", seconds: 10, connections: 16, script: script)
        }
        let peer = Double(BenchTools.resident(servers.nginx, "VmHWM")) / 1e6
        print("| nginx, doing the same | \(text(peer, "MB")) | | |")
        return Figure(
            value: Double(BenchTools.resident(process, "VmHWM")) / 1e6,
            limit: 40,
            unit: "MB"
        )
    }

    private static func passing(_ servers: BenchServers) throws -> Figure {
        let (process, base) = try servers.serve("passing")
        defer { process.terminate() }
        let (port, path) = try split(base)
        let connection = try BenchConnection(port: port)
        try connection.ask("\(path)http/127.0.0.1:\(servers.originPort)/film", port: port)
        try connection.receiveFirstByte()
        _ = connection.drop(8 << 20)
        let before = BenchTools.resident(process)
        let left = (1 << 30) - 1 - (8 << 20) - (1 << 20)
        guard connection.drop(left) == left else { throw BenchFailure("the film was cut") }
        let peak = BenchTools.resident(process, "VmHWM")
        return Figure(value: Double(peak - before) / 1_048_576, limit: 24, unit: "MiB")
    }

    /// Connections that have had an answer and may ask for another one.
    private static func idle(_ servers: BenchServers) throws -> Figure {
        let growth = try growth(servers, "idle", players: 1000) { connection, target, port in
            try connection.ask(target, port: port, "Range: bytes=0-0\r\n")
            try connection.receiveFirstByte()
        }
        return Figure(value: growth, limit: 32, unit: "KiB")
    }

    /// Connections whose clients have stopped to read in the middle of an answer.
    private static func paused(_ servers: BenchServers) throws -> Figure {
        let growth = try growth(servers, "paused", players: 100) { connection, target, port in
            try connection.ask(target, port: port)
            try connection.receiveFirstByte()
        }
        return Figure(value: growth, limit: 96, unit: "KiB")
    }

    /// What each player adds to the process, in KiB.
    private static func growth(
        _ servers: BenchServers,
        _ name: String,
        players: Int,
        _ play: (BenchConnection, String, Int) throws -> Void
    ) throws -> Double {
        let (process, base) = try servers.serve(name)
        defer { process.terminate() }
        let (port, path) = try split(base)
        let target = "\(path)http/127.0.0.1:\(servers.originPort)/film"
        let first = try BenchConnection(port: port)
        try first.ask(target, port: port, "Range: bytes=0-33554431\r\n")
        try first.receiveFirstByte()
        _ = first.drop((32 << 20) - 1)
        let before = BenchTools.resident(process)
        let connections = try (0..<players).map { _ in
            let connection = try BenchConnection(port: port)
            try play(connection, target, port)
            return connection
        }
        usleep(1_000_000)
        let after = BenchTools.resident(process)
        return withExtendedLifetime(connections) { Double(after - before) / 1024 / Double(players) }
    }

    private static func split(_ base: String) throws -> (port: Int, path: String) {
        let parts = base.split(separator: "/").map(String.init)
        guard parts.count == 3, let port = parts[1].split(separator: ":").last.flatMap({ Int($0) })
        else { throw BenchFailure("no address: \(base)") }
        return (port, "/\(parts[2])/")
    }

    private static func time(_ body: () throws -> Void) rethrows -> Double {
        let start = ContinuousClock.now
        try body()
        return (ContinuousClock.now - start).nanoseconds / 1e6
    }
}
