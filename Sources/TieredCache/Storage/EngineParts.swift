/// The parts that a test may replace: disk, threads, random numbers.
package struct EngineParts: Sendable {
    /// The disk.
    package var fileSystem: any FileSystem = POSIXFileSystem()
    /// Makes an executor on which code may block on the disk, by the name of its threads.
    package var makeExecutor: @Sendable (String) -> IOExecutor = { name in
        IOExecutor(threads: 8, name: name)
    }
    /// Draws the numbers from 0 to 1 that place waits between attempts.
    package var jitter: @Sendable () -> Double = { .random(in: 0...1) }
    /// Changes options that the configuration does not have.
    package var adjustDisk: @Sendable (inout DiskStoreOptions) -> Void = { _ in }

    /// The machine's own.
    package init() {}
}
