#if os(Linux)
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// What is checked of each run must be able to fail: nothing is written while it is being punched.
@Suite(.tags(.realTime)) struct PunchLawTests {
    /// A file that is punched, and what the disk does before the punch has returned.
    private struct Double {
        /// What the disk does within the next call.
        private final class Meanwhile: Sendable {
            let work = Guarded<(@Sendable () -> Void)?>(nil)
        }

        let scheduler = SimulationScheduler(
            seed: 1,
            pace: SimulationPace(),
            time: ManualTimeSource()
        )
        let files: SimulatedFileSystem
        private let meanwhile = Meanwhile()

        init() {
            let disk = InMemoryFileSystem(time: scheduler.time)
            files = SimulatedFileSystem(disk, scheduler: scheduler, warmth: 100) { [meanwhile] in
                meanwhile.work.withLock { $0.take() }?()
            }
        }

        func file(_ name: String) throws -> OpenFile {
            let root = try files.openRoot("/d", creating: true)
            defer { files.close(root) }
            let file = try files.open(name, in: root, mode: .openOrCreate)
            try files.write([UInt8](repeating: 1, count: 400), to: file, at: 0)
            return file
        }

        func punch(
            _ range: Range<Int64>,
            of file: OpenFile,
            while meanwhile: @escaping @Sendable () -> Void
        ) throws {
            self.meanwhile.work.withLock { $0 = meanwhile }
            try files.punch(file, range: range)
        }

        func write(_ range: Range<Int64>, to file: OpenFile) {
            do throws(FileSystemError) {
                let bytes = [UInt8](repeating: 2, count: range.count)
                try files.write(bytes, to: file, at: range.lowerBound)
            } catch {
                Issue.record("the disk refuses: \(error)")
            }
        }
    }

    @Test(
        "a part that is written while it is being punched fails the run",
        arguments: [100..<200 as Range<Int64>, 150..<160, 50..<101, 199..<250, 0..<400]
    )
    func overlap(_ range: Range<Int64>) throws {
        let disk = Double()
        let file = try disk.file("f")
        try disk.punch(100..<200, of: file) { disk.write(range, to: file) }
        #expect(disk.scheduler.failure == "f \(range) is written while it is being punched")
    }

    @Test(
        "what lies beside it may be written",
        arguments: [0..<100 as Range<Int64>, 200..<300]
    )
    func beside(_ range: Range<Int64>) throws {
        let disk = Double()
        let file = try disk.file("f")
        try disk.punch(100..<200, of: file) { disk.write(range, to: file) }
        #expect(disk.scheduler.failure == nil)
    }

    @Test("another file may be written, and the same part once it is gone")
    func apart() throws {
        let disk = Double()
        let (file, other) = (try disk.file("f"), try disk.file("g"))
        try disk.punch(100..<200, of: file) { disk.write(100..<200, to: other) }
        disk.write(100..<200, to: file)
        #expect(disk.scheduler.failure == nil)
    }

    @Test("what was given to a socket is not punched any more, and another file may be")
    func sent() throws {
        let disk = Double()
        let (file, other) = (try disk.file("f"), try disk.file("g"))
        #expect(disk.files.sendable(file, range: 0..<10) != nil)
        try disk.punch(100..<200, of: other) {}
        #expect(disk.scheduler.failure == nil)
        try disk.punch(100..<200, of: file) {}
        #expect(disk.scheduler.failure?.hasPrefix("f is punched") == true)
    }

    @Test("of two threads, one that punches and one that writes, some run has both at once")
    func threads() async {
        // A process of its own, since a run takes the runtime's hook for its jobs.
        await #expect(processExitsWith: .success) {
            let failures = (1...12).map { Self.failure(seed: $0, writes: 100..<200) }
            precondition(failures.contains { $0?.contains("while it is being punched") == true })
            precondition((1...12).allSatisfy { Self.failure(seed: $0, writes: 200..<300) == nil })
        }
    }

    /// Has one task punch bytes 100 to 199 while another one writes.
    private static func failure(seed: UInt64, writes range: Range<Int64>) -> String? {
        let scheduler = SimulationScheduler(
            seed: seed,
            pace: SimulationPace(),
            time: ManualTimeSource()
        )
        let disk = InMemoryFileSystem(time: scheduler.time)
        let files = SimulatedFileSystem(disk, scheduler: scheduler, warmth: 100) {}
        scheduler.run {
            do {
                let root = try files.openRoot("/d", creating: true)
                let file = try files.open("f", in: root, mode: .openOrCreate)
                try files.write([UInt8](repeating: 1, count: 400), to: file, at: 0)
                try await withThrowingTaskGroup { group in
                    group.addTask { try files.punch(file, range: 100..<200) }
                    group.addTask {
                        let bytes = [UInt8](repeating: 2, count: range.count)
                        try files.write(bytes, to: file, at: range.lowerBound)
                    }
                    try await group.waitForAll()
                }
                files.close(file)
                files.close(root)
            } catch {
                scheduler.fail("the disk refuses: \(error)")
            }
        }
        return scheduler.failure
    }
}
#endif
