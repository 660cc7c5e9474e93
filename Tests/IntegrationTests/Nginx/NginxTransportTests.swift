import HTTPTypes
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

/// The transport against a server of other authors.
@Suite("The transport and nginx", .tags(.server, .realTime), .timeLimit(.minutes(10)))
struct NginxTransportTests {
    /// Pulls `target` to its end and compares every byte.
    private func fetch(
        _ url: String,
        _ content: GeneratedBody,
        with transport: NIOTransport,
        fields: HTTPFields = [:]
    ) async throws -> HTTPResponse {
        let start = try #require(url.firstRange(of: "://")).upperBound
        let slash = try #require(url[start...].firstIndex(of: "/"))
        var head = HTTPRequest(
            method: .get,
            scheme: String(url.prefix { $0 != ":" }),
            authority: String(url[start..<slash]),
            path: String(url[slash...])
        )
        head.headerFields = fields
        let response = try await transport.send(TransportRequest(head: head))
        var offset: Int64 = 0
        while let chunk = try await response.body.next() {
            let matches = chunk.withUnsafeBytes { content.matches($0, at: offset) }
            try #require(matches, "\(url) at \(offset)")
            offset += Int64(chunk.count)
        }
        #expect(offset == content.length, "\(url)")
        return response.head
    }

    @Test("Bodies from 0 bytes to 256 MiB arrive whole, over few connections")
    func sizes() async throws {
        let sizes: [Int64] = [0, 1, 65_535, 65_536, 65_537, 1 << 20, 256 << 20]
        let files = Dictionary(
            uniqueKeysWithValues: sizes.map { ("\($0)", GeneratedBody(seed: 3, length: $0)) }
        )
        let transport = NIOTransport()
        let (_, exchanges) = try await NginxServer.run(files: files) { server in
            for (name, content) in files {
                let head = try await fetch(server.url("/\(name)"), content, with: transport)
                #expect(head.status == 200)
                #expect(head.headerFields[.contentLength] == name)
                #expect(head.headerFields[.eTag] != nil)
            }
            await transport.shutdown()
        }
        #expect(exchanges.count == sizes.count)
        #expect(Set(exchanges.map(\.connection)).count == 1)
    }

    @Test("A chunked body, and a coding that is offered but not wanted")
    func framings() async throws {
        let content = GeneratedBody(seed: 4, length: 3_000_000)
        let transport = NIOTransport()
        _ = try await NginxServer.run(files: ["a": content]) { server in
            let chunked = try await fetch(server.url("/chunked/a"), content, with: transport)
            #expect(chunked.headerFields[.transferEncoding] == "chunked")
            #expect(chunked.headerFields[.contentLength] == nil)
            let identity: HTTPFields = [.acceptEncoding: "identity"]
            let plain = try await fetch(
                server.url("/gzip/a"),
                content,
                with: transport,
                fields: identity
            )
            #expect(plain.headerFields[.contentEncoding] == nil)
            await transport.shutdown()
        }
    }

    @Test("TLS with a certificate that only this client trusts")
    func tls() async throws {
        let content = GeneratedBody(seed: 5, length: 8 << 20)
        _ = try await NginxServer.run(files: ["a": content]) { server in
            let trusting = NIOTransport(additionalTrustRoots: [server.certificate])
            let head = try await fetch(server.secureURL("/a"), content, with: trusting)
            #expect(head.status == 200)
            await trusting.shutdown()
            let strict = NIOTransport()
            let error = await #expect(throws: TransportError.self) {
                try await fetch(server.secureURL("/a"), content, with: strict)
            }
            #expect(error?.kind == .tls)
            await strict.shutdown()
        }
    }

    @Test("Concurrent clients")
    func concurrent() async throws {
        let content = GeneratedBody(seed: 6, length: 2 << 20)
        let transport = NIOTransport()
        let (_, exchanges) = try await NginxServer.run(files: ["a": content]) { server in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        _ = try await fetch(server.url("/a"), content, with: transport)
                    }
                }
                try await group.waitForAll()
            }
            await transport.shutdown()
        }
        #expect(exchanges.count == 20)
        #expect(exchanges.allSatisfy { $0.status == 200 && $0.target == "/a" })
    }
}
