import Foundation
import TestParts
import Testing
import TieredCache
import TieredCacheFoundation
import TieredCacheTesting

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension URLSessionTests {
    @Suite(
        "URLSession with a cache: tasks that are cancelled, suspended, downloaded",
        .tags(.realTime),
        .timeLimit(.minutes(2))
    )
    struct TaskControlTests {
        @Test("a cancelled task ends once, with the error of a session, and leaves the origin")
        func cancellation() async throws {
            let delegate = SessionDelegate()
            try await SessionFixture.run(delegate: delegate) { fixture in
                let gate = OriginGate()
                fixture.origin.serve(
                    "/a",
                    .text("late"),
                    OriginScript(OriginBehaviour.faithful.with { $0.gate = gate })
                )
                let task = fixture.session.dataTask(with: try fixture.request("/a"))
                task.resume()
                await fixture.origin.waitUntil { $0.exchanges(for: "/a").count == 1 }
                task.cancel()
                let told = await delegate.all
                #expect(told.error?.code == .cancelled)
                #expect(told.chunks.isEmpty)
                gate.open()
                await fixture.origin.waitUntil { $0.openResponses == 0 }
                #expect(delegate.completions == 1)
            }
        }

        @Test("a cancelled call of an asynchronous form throws, and one cancelled before its start")
        func asynchronousCancellation() async throws {
            try await SessionFixture.run { fixture in
                let gate = OriginGate()
                fixture.origin.serve(
                    "/a",
                    .text("late"),
                    OriginScript(OriginBehaviour.faithful.with { $0.gate = gate })
                )
                let request = try fixture.request("/a")
                let call = Task { try await fixture.load(request).text }
                await fixture.origin.waitUntil { $0.exchanges(for: "/a").count == 1 }
                call.cancel()
                let error = await #expect(throws: URLError.self) { try await call.value }
                #expect(error?.code == .cancelled)
                let early = fixture.session.dataTask(with: request)
                early.cancel()
                early.resume()
                gate.open()
            }
        }

        @Test("a streamed body is read as it is taken, and a suspended task goes on where it was")
        func suspension() async throws {
            let delegate = SessionDelegate()
            try await SessionFixture.run(delegate: delegate, answering: StreamingProtocol.self) {
                fixture in
                let gate = OriginGate()
                let length: Int64 = 2 << 20
                fixture.origin.serve(
                    "/film",
                    .generated(length: length),
                    OriginScript(.wait(for: gate, after: 1 << 20))
                )
                let request = try fixture.request("/film")
                let task = fixture.session.dataTask(with: request)
                task.resume()
                task.resume()
                await delegate.waitForBytes()
                task.suspend()
                #expect(task.state == .suspended)
                gate.open()
                await fixture.origin.waitUntil { $0.bodyBytesWritten(for: "/film") == length }
                #expect(delegate.completions == 0)
                task.resume()
                let told = await delegate.all
                #expect(told.error == nil)
                #expect(
                    GeneratedBody(seed: 1, length: length)
                        .matches([UInt8](Data(told.chunks.joined())))
                )
            }
        }

        @Test("a download through the class gives a file that can be moved, from the cache too")
        func download() async throws {
            try await SessionFixture.run { fixture in
                let length: Int64 = 2 << 20
                fixture.origin.serve(
                    "/film",
                    .generated(length: length, cacheControl: "max-age=60")
                )
                for _ in 0..<2 {
                    let (file, response) = try await TieredURLProtocol.download(
                        for: fixture.request("/film")
                    )
                    let moved = file.appendingPathExtension("moved")
                    try FileManager.default.moveItem(at: file, to: moved)
                    let bytes = [UInt8](try Data(contentsOf: moved))
                    #expect(GeneratedBody(seed: 1, length: length).matches(bytes))
                    #expect(bytes.count == Int(length))
                    #expect(response.expectedContentLength == length)
                    try FileManager.default.removeItem(at: moved)
                }
                #expect(fixture.requests(for: "/film") == 1)
            }
        }

        @Test("a download that fails leaves no file")
        func failedDownload() async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve(
                    "/cut",
                    .generated(length: 1 << 20),
                    OriginScript.first(1, .cut(after: 1 << 18)).then(.dropped())
                )
                let before = try files()
                await #expect(throws: URLError.self) {
                    try await TieredURLProtocol.download(for: fixture.request("/cut"))
                }
                #expect(try files() == before)
            }
        }

        private func files() throws -> Set<String> {
            let directory = FileManager.default.temporaryDirectory
            let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
            return Set(names.filter { $0.hasPrefix("tieredcache-") && $0.hasSuffix(".tmp") })
        }
    }
}
