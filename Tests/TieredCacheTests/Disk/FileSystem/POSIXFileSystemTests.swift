import Foundation
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

@Suite(.timeLimit(.minutes(10)))
struct POSIXFileSystemTests {
    @Test(arguments: ["/proc/nothing/can/be/made/here", "/dev/null/below/a/file", "/proc/nope"])
    func aRootThatCannotBeMadeIsAnError(_ path: String) {
        #expect(throws: FileSystemError.self) {
            try POSIXFileSystem(mayBlockAnyThread: true).openRoot(FilePath(path), creating: true)
        }
    }

    @Test("a call that may wait for the disk is a trap on a thread that others wait for")
    func sharedThread() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            _ = try POSIXFileSystem().openRoot("/tmp", creating: false)
        }
        #expect(result?.isBlockingTrap == true)
    }

    @Test("so is closing a file, which may give back gigabytes")
    func closing() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            POSIXFileSystem().close(OpenFile(number: 1000))
        }
        #expect(result?.isBlockingTrap == true)
    }

    @Test("so is one within what must not block, on any thread")
    func nonBlockingCall() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            await IOExecutor(threads: 1).run {
                LockChecker.withoutBlocking("it calls") {
                    _ = Result { try POSIXFileSystem().openRoot("/tmp", creating: false) }
                }
            }
        }
        #expect(result?.isBlockingTrap == true)
    }

    @Test("it is none on a thread of an executor, nor where it is said why")
    func waitingThread() async throws {
        let directory = TemporaryDirectory()
        let path = directory.path
        let disk = POSIXFileSystem()
        let root = try await IOExecutor(threads: 1).run { () throws(FileSystemError) in
            try disk.openRoot(path, creating: false)
        }
        LockChecker.withoutBlocking("it looks at what is open") {
            #expect(throws: Never.self) { try disk.status(of: root) }
            disk.close(root)
        }
        try LockChecker.withBlocking("nobody waits for a test") { () throws(FileSystemError) in
            disk.close(try disk.openRoot(path, creating: false))
        }
    }
}

extension ExitTest.Result {
    /// Whether the process ended where a thread was about to wait that must not.
    fileprivate var isBlockingTrap: Bool {
        String(decoding: standardErrorContent, as: UTF8.self).contains("waits for the disk")
    }
}
