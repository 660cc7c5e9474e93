import Foundation
import Glibc

/// A failure of the benchmark itself.
struct BenchFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Programs and ports of the machine.
enum BenchTools {
    /// Where a program is, or nil.
    static func path(_ name: String) -> String? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        return (path.split(separator: ":").map(String.init) + ["/usr/sbin", "/sbin"])
            .map { "\($0)/\(name)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Starts a program on one core.
    static func start(
        _ program: String,
        _ arguments: [String],
        onCore core: Int,
        output: Pipe? = nil
    ) throws -> Process {
        guard let taskset = path("taskset") else { throw BenchFailure("there is no taskset") }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: taskset)
        process.arguments = ["-c", "\(core)", program] + arguments
        process.standardOutput = output ?? FileHandle.nullDevice
        process.standardInput = FileHandle.nullDevice
        // As many threads for connections as the peer has workers.
        process.environment = ProcessInfo.processInfo.environment.merging(
            ["NIO_SINGLETON_GROUP_LOOP_COUNT": "1"]
        ) { $1 }
        try process.run()
        return process
    }

    /// Runs a program to its end, on any core.
    ///
    /// - Parameters:
    ///   - program: where it is.
    ///   - arguments: its arguments.
    /// - Returns: what it said, its errors too.
    /// - Throws: ``BenchFailure`` with that if it failed, or why it cannot be started.
    @discardableResult
    static func run(_ program: String, _ arguments: [String]) throws -> String {
        let output = Pipe()
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let said = String(
            decoding: output.fileHandleForReading.readDataToEndOfFile(),
            as: UTF8.self
        )
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw BenchFailure("\(program) \(arguments.joined(separator: " ")) said: \(said)")
        }
        return said
    }

    /// The core for clients: another one than the servers', if there is one.
    static var clientCore: Int { ProcessInfo.processInfo.processorCount > 1 ? 1 : 0 }

    /// The processor time that a process has taken, in nanoseconds.
    static func processorTime(_ process: Int32) -> Double {
        let text = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
        // Behind the name, which may hold anything but this.
        let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
        guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12])
        else { return 0 }
        return (user + system) * 1e9 / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    /// Bytes of a process in memory: now, or the most there were.
    static func resident(_ process: Process, _ name: String = "VmRSS") -> Int {
        resident(process.processIdentifier, name)
    }

    /// The same of a process that has this identifier.
    static func resident(_ process: Int32, _ name: String = "VmRSS") -> Int {
        let path = "/proc/\(process)/status"
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix("\(name):") }
        let words = line?.split(whereSeparator: { $0 == " " || $0 == "\t" }) ?? []
        return (words.count > 1 ? Int(words[1]) ?? 0 : 0) << 10
    }

    /// Allows this process, and those that it starts, as many open files as it may have.
    ///
    /// - Returns: how many those are.
    @discardableResult
    static func raiseDescriptorLimit() -> Int {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return Int(clamping: limit.rlim_cur)
    }
}

/// A blocking connection to a loopback port.
final class BenchConnection {
    private let descriptor: Int32

    init(port: Int) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else {
            close(descriptor)
            throw BenchFailure("cannot connect to port \(port): errno \(errno)")
        }
    }

    deinit { close(descriptor) }

    /// Sends a GET.
    func ask(_ target: String, port: Int, _ fields: String = "") throws {
        let text = "GET \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\(fields)\r\n"
        let sent = text.withCString { write(descriptor, $0, strlen($0)) }
        guard sent == text.utf8.count else { throw BenchFailure("cannot send") }
    }

    /// Reads the head and the first byte of the body; the rest stays in the socket.
    @discardableResult
    func receiveFirstByte() throws -> String {
        var head: [UInt8] = []
        var byte: UInt8 = 0
        while !head.suffix(4).elementsEqual([13, 10, 13, 10]) {
            guard read(descriptor, &byte, 1) == 1 else { throw BenchFailure("no head") }
            head.append(byte)
        }
        guard read(descriptor, &byte, 1) == 1 else { throw BenchFailure("no body") }
        return String(decoding: head, as: UTF8.self)
    }

    /// What is still to come, as text.
    func rest() -> String {
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let got = read(descriptor, &buffer, buffer.count)
            guard got > 0 else { return String(decoding: text, as: UTF8.self) }
            text += buffer[..<got]
        }
    }

    /// Reads and forgets.
    ///
    /// - Returns: how many bytes there were; fewer than asked for at the end of the stream.
    func drop(_ count: Int) -> Int {
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        var done = 0
        while done < count {
            let got = read(descriptor, &buffer, min(buffer.count, count - done))
            guard got > 0 else { break }
            done += got
        }
        return done
    }
}
