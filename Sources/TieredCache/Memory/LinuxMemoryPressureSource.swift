package import SystemPackage

/// The memory pressure of a Linux machine and of the control group (v2) that the process runs in.
///
/// The files are read every two seconds. PSI also offers triggers, but they need a thread that
/// waits in `poll` and, before Linux 6.4, privileges; `avg10` moves slowly enough to be polled.
package struct LinuxMemoryPressureSource: MemoryPressureSource {
    private let root: FilePath
    private let interval: Duration
    private let time: any TimeSource

    /// Creates a source; nothing is read yet.
    ///
    /// - Parameters:
    ///   - root: where `proc` and `sys` are mounted; another directory in tests.
    ///   - interval: the time between two readings.
    ///   - time: what the interval is measured by.
    package init(
        root: FilePath = "/",
        interval: Duration = .seconds(2),
        time: any TimeSource = SystemTimeSource()
    ) {
        self.root = root
        self.interval = interval
        self.time = time
    }

    /// One level per interval, until the consumer's task is cancelled.
    package func levels() -> AsyncStream<MemoryPressureLevel> {
        AsyncStream {
            do {
                try await time.sleep(for: interval)
                return read().level
            } catch {
                return nil  // Cancelled: the consumer has ended.
            }
        }
    }

    /// Reads all files once.
    ///
    /// They are made by the kernel and do not wait for a disk.
    func read() -> LinuxMemoryReading {
        var reading = LinuxMemoryReading()
        if let machine = text(of: root.appending("proc/pressure/memory")) {
            reading.addPressure(machine)
        }
        // A group is also held by the limits of the groups that it is in.
        var group = groupPath
        while let directory = group {
            add(directory, to: &reading)
            group = directory.isEmpty ? nil : directory.removingLastComponent()
        }
        return reading
    }

    /// The process's group below the root of the hierarchy, from the line `0::/path`.
    private var groupPath: FilePath? {
        text(of: root.appending("proc/self/cgroup"))?
            .split(separator: "\n")
            // Hierarchy 0 is that of version 2 (cgroups(7)); the others have no memory.pressure.
            .first { $0.hasPrefix("0::/") }
            .map { FilePath(String($0.dropFirst(4))) }
    }

    private func add(_ group: FilePath, to reading: inout LinuxMemoryReading) {
        let directory = root.appending("sys/fs/cgroup").appending(group.components)
        if let pressure = text(of: directory.appending("memory.pressure")) {
            reading.addPressure(pressure)
        }
        reading.addGroup(
            current: text(of: directory.appending("memory.current")),
            high: text(of: directory.appending("memory.high")),
            max: text(of: directory.appending("memory.max")),
            stat: text(of: directory.appending("memory.stat"))
        )
    }

    /// The text of a small file, or `nil` if there is none: any of them may be missing.
    private func text(of path: FilePath) -> String? {
        // memory.stat is the longest, with some 2 KiB.
        var bytes = [UInt8](repeating: 0, count: 16_384)
        do {
            let file = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
            let count = try file.closeAfter {
                try bytes.withUnsafeMutableBytes { try file.read(into: $0) }
            }
            return String(decoding: bytes[..<count], as: UTF8.self)
        } catch {
            // A kernel without it, or a group that has gone meanwhile: it says nothing about
            // memory.
            return nil
        }
    }
}
