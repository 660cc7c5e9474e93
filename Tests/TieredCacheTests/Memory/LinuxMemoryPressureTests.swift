import Foundation
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

@Suite("Linux memory pressure", .timeLimit(.minutes(10)))
struct LinuxMemoryPressureTests {
    static let calm = "some avg10=0.00 avg60=9.00 avg300=9.00 total=1\nfull avg10=0.00 avg60=9.00\n"

    @Test(arguments: [
        (calm, MemoryPressureLevel.normal),
        ("some avg10=9.99 avg60=0 total=0\nfull avg10=0.99 avg60=0 total=0\n", .normal),
        ("some avg10=10.00 avg60=0 total=0\n", .warning),
        ("some avg10=0.00\nfull avg10=1.00\n", .warning),
        ("some avg10=50.00\nfull avg10=5.00\n", .critical),
        ("", .normal), ("some\nfull avg10=\nsome avg10=-3\nfull avg10=x\nodd avg10=99", .normal),
    ])
    func `Stalls make a level`(text: String, level: MemoryPressureLevel) {
        var reading = LinuxMemoryReading()
        reading.addPressure(text)
        #expect(reading.level == level)
    }

    @Test(arguments: [
        ("899", "max\n", "1000\n", "", MemoryPressureLevel.normal),
        ("900\n", "max\n", "1000\n", "", .warning),
        ("970\n", "1000\n", "2000\n", "", .critical),
        ("970\n", "max\n", "max\n", "", .normal),
        ("970\n", "max\n", "1000\n", "anon 5\ninactive_file 500\n", .normal),
        ("970\n", "max\n", "1000\n", "inactive_file 5000\n", .normal),
        ("much\n", "max\n", "1000\n", "inactive_file\n", .normal),
        ("5\n", "0\n", "0\n", "", .normal),
    ])
    func `A group's use makes a level`(
        current: String,
        high: String,
        max: String,
        stat: String,
        level: MemoryPressureLevel
    ) {
        var reading = LinuxMemoryReading()
        reading.addGroup(current: current, high: high, max: max, stat: stat)
        #expect(reading.level == level)
    }

    @Test
    func `The worst of the machine, the group and the groups around it counts`() async throws {
        let root = FileManager.default.temporaryDirectory
            .appendingPathComponent("pressure-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: root) }
        func write(_ path: String, _ text: String) throws {
            let file = root.appendingPathComponent(path)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try Data(text.utf8).write(to: file)
        }
        let source = LinuxMemoryPressureSource(root: FilePath(root.path))
        #expect(source.read().level == .normal)
        try write("proc/pressure/memory", Self.calm)
        try write("proc/self/cgroup", "0::/app/player\n")
        try write("sys/fs/cgroup/app/player/memory.current", "10\n")
        try write("sys/fs/cgroup/app/player/memory.max", "max\n")
        #expect(source.read().level == .normal)
        try write("sys/fs/cgroup/app/memory.current", "95\n")
        try write("sys/fs/cgroup/app/memory.max", "100\n")
        #expect(source.read().level == .warning)
        try write("sys/fs/cgroup/memory.pressure", "full avg10=30.00 avg60=0 total=0\n")
        #expect(source.read().level == .critical)
    }

    @Test
    func `A level comes once per interval until no consumer listens`() async throws {
        let time = ManualTimeSource()
        let source = LinuxMemoryPressureSource(root: "/nonexistent", time: time)
        let task = Task {
            var levels: [MemoryPressureLevel] = []
            for await level in source.levels() { levels.append(level) }
            return levels
        }
        for _ in 0..<2 {
            await time.waitForSleepers()
            time.advance(by: .seconds(2))
        }
        await time.waitForSleepers()
        task.cancel()
        #expect(await task.value == [.normal, .normal])
    }
}
