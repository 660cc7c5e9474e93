import HTTPTypes
import SystemPackage
import TieredCacheTesting

/// Runs the whole engine against an embedded origin, explains each step, and checks every claim.
///
/// Most steps run `tieredcache` in separate processes, to show that one process finds the entries
/// of another. The origin's log proves the claims.
struct Demo {
    let origin: ScriptedOrigin
    let files: TemporaryDirectory
    let program: DemoProgram
    var report: DemoReport

    static let mebibyte: Int64 = 1 << 20
    static let freshForAnHour = "max-age=3600"

    /// Runs all steps.
    ///
    /// - Returns: whether every claim holds.
    static func run(
        cacheDirectory: FilePath?,
        write: @escaping (String) -> Void
    ) async throws -> Bool {
        let origin = try await ScriptedOrigin.start()
        let files = try TemporaryDirectory("tieredcache-demo")
        let directory = cacheDirectory ?? files.appending("cache")
        var demo = Demo(
            origin: origin,
            files: files,
            program: DemoProgram(cacheDirectory: directory),
            report: DemoReport(write: write)
        )
        write("An origin on 127.0.0.1:\(origin.port) serves generated media; no network is needed.")
        write("The cache is in \(directory).")
        do {
            try await demo.runSteps()
        } catch {
            await origin.stop()
            throw error
        }
        await origin.stop()
        write("\n\(demo.report.summary)")
        return demo.report.failedClaims.isEmpty
    }

    private mutating func runSteps() async throws {
        try await coldGet()
        try await diskHit()
        try await memoryHit()
        try await killAndResume()
        try await sixOfThirty()
        try await revalidation()
    }

    /// Runs `get` for a target of the origin into a file.
    func get(_ target: String, into name: String) async throws -> DemoProgram.Outcome {
        let file = files.appending(name).string
        return try await program.run(["get", origin.url(target), "--output", file, "--json"])
    }

    func size(_ bytes: Int64) -> String { ProgressLine.size(bytes) }

    func equals(_ name: String, resource: OriginResource) throws -> Bool {
        guard files.names.contains(name), let body = resource.generatedBody else { return false }
        return try files.file(name, equals: body)
    }
}
