#if os(Linux)
import CLinuxCalls
import Subprocess
import SystemPackage
import TestParts
import Testing

@testable import TieredCache

/// The mocked services, which are Debian's `python3-dbusmock`.
private enum MockedServices {
    static let python = Executable.path("/usr/bin/python3")
    static let script = FilePath("\(#filePath)").removingLastComponent()
        .pushing("../../Agent/bus.py").lexicallyNormalized()

    /// Runs tests only where they are installed.
    static var areInstalled: ConditionTrait {
        .enabled("python3-dbusmock or dbus-daemon is not installed") {
            let test = "import dbusmock, shutil, sys; sys.exit(not shutil.which('dbus-daemon'))"
            return try await Subprocess.run(
                python,
                arguments: ["-c", test],
                output: .discarded,
                error: .discarded
            ).terminationStatus.isSuccess
        }
    }
}

/// What services say, at a bus of D-Bus of its own with mocked ones: Tests/Agent/bus.py.
@Suite(
    "What services of the machine say",
    .tags(.server, .realTime),
    .timeLimit(.minutes(2)),
    MockedServices.areInstalled
)
struct MessageBusTests {
    /// Makes services say something: a line of bus.py.
    private typealias Say = (String) async throws -> Void

    private func withBus(_ body: (String, Say) async throws -> Void) async throws {
        _ = try await Subprocess.run(
            MockedServices.python,
            arguments: [MockedServices.script.string],
            input: .inputWriter,
            output: .sequence,
            error: .discarded
        ) { execution in
            var lines = execution.standardOutput.strings().makeAsyncIterator()
            let address = try #require(try await lines.next()).trimmed
            try await body(address) { line in
                _ = try await execution.standardInputWriter.write(line + "\n")
                let said = try await lines.next()
                try #require(said?.trimmed == "ok")
            }
            try await execution.standardInputWriter.finish()
        }
    }

    /// Waits until `bus` has another answer; the suite's time limit is that of the wait.
    private func until(_ answer: Int64?, to question: CInt, at bus: MessageBus) {
        while bus.answer(question) != answer { bus.process(waiting: .milliseconds(500)) }
    }

    @Test("Properties are known at first, at each change, and not when their service has gone")
    func properties() async throws {
        try await withBus { address, say in
            try await say("power yes")
            let bus = MessageBus(.address(address), asking: [TC_BUS_POWER, TC_BUS_IDLE])
            #expect(bus.answer(TC_BUS_POWER) == nil)
            bus.settle(within: .seconds(60))
            #expect(bus.answer(TC_BUS_POWER) == 1)
            #expect(bus.answer(TC_BUS_IDLE) == nil)
            try await say("power no")
            until(0, to: TC_BUS_POWER, at: bus)
            try await say("idle yes")
            until(1, to: TC_BUS_IDLE, at: bus)
            try await say("gone power")
            until(nil, to: TC_BUS_POWER, at: bus)
            #expect(bus.answer(TC_BUS_IDLE) == 1)
        }
    }

    @Test("A service that speaks without end is asked one question at a time")
    func storm() async throws {
        try await withBus { address, say in
            let bus = MessageBus(.address(address), asking: [TC_BUS_POWER])
            bus.settle(within: .seconds(60))
            try await say("power no")
            try await say("storm 5001")
            until(1, to: TC_BUS_POWER, at: bus)
        }
    }

    @Test("A service that does not answer in time is asked until it does")
    func late() async throws {
        try await withBus { address, say in
            try await say("power yes")
            try await say("stop power")
            let bus = MessageBus(.address(address), asking: [TC_BUS_POWER])
            // Longer than a question is waited for.
            bus.settle(within: .seconds(6))
            #expect(!bus.isSettled)
            #expect(bus.answer(TC_BUS_POWER) == nil)
            try await say("go power")
            until(1, to: TC_BUS_POWER, at: bus)
        }
    }

    @Test("NetworkManager knows whether the network is metered, else the portal")
    func metered() async throws {
        try await withBus { address, say in
            try await say("portal yes")
            let watch = MeteredWatch(system: .address(address), session: .address(address))
            watch.settle(within: .seconds(60))
            #expect(watch.isMetered == true)
            try await say("portal no")
            while watch.isMetered != false { watch.process() }
            for (said, isMetered) in [(1, true), (2, false), (3, true), (4, false)] {
                try await say("network-manager \(said)")
                while watch.isMetered != isMetered { watch.process() }
            }
            // It does not know: the portal is asked again.
            try await say("network-manager 0")
            try await say("portal yes")
            while watch.isMetered != true { watch.process() }
        }
    }

    @Test("Where there is no bus nothing is known, and nothing waits")
    func absent() async throws {
        let bus = MessageBus(.address("unix:path=/nonexistent/bus"), asking: [TC_BUS_POWER])
        bus.settle(within: .seconds(60))
        #expect(bus.answer(TC_BUS_POWER) == nil)
    }

    @Test("A bus that has ended leaves nothing known")
    func ended() async throws {
        var left: MessageBus?
        try await withBus { address, say in
            try await say("power yes")
            let bus = MessageBus(.address(address), asking: [TC_BUS_POWER])
            bus.settle(within: .seconds(60))
            #expect(bus.answer(TC_BUS_POWER) == 1)
            left = bus
        }
        let bus = try #require(left)
        until(nil, to: TC_BUS_POWER, at: bus)
    }
}

extension String {
    fileprivate var trimmed: String { split(whereSeparator: \.isNewline).joined() }
}
#endif
