import SystemPackage

extension DemoCommand {
    func run() async throws {
        let directory = cache.directory.map { FilePath($0) }
        let holds = try await Interruption.guarding {
            try await Demo.run(cacheDirectory: directory) { print($0) }
        }
        guard holds else {
            throw CommandFailure(.demoFailed, message: "a claim of the demo does not hold")
        }
    }
}
