import SystemPackage
import Testing

@_spi(Benchmarks) @testable import TieredCache

@Suite(.timeLimit(.minutes(10)))
struct POSIXFileSystemTests {
    @Test(arguments: ["/proc/nothing/can/be/made/here", "/dev/null/below/a/file", "/proc/nope"])
    func aRootThatCannotBeMadeIsAnError(_ path: String) {
        #expect(throws: FileSystemError.self) {
            try POSIXFileSystem().openRoot(FilePath(path), creating: true)
        }
    }
}
