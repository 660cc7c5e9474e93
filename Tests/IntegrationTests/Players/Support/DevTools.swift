import Foundation
import SystemPackage
import Testing
import TieredCacheTesting

@testable import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A page in headless Chromium, driven over the pipes of its DevTools protocol.
final class DevTools: Sendable {
    struct Failure: Error {
        let what: String
    }

    /// The browser has said no: the page that was asked is just leaving.
    struct Refusal: Error {
        let what: String
    }

    /// In milliseconds: how long the browser may say nothing.
    private static let patience: Int32 = 60_000

    private let input: FileDescriptor
    private let output: FileDescriptor
    private let io = IOExecutor(threads: 1)
    private let unread = Guarded<[UInt8]>([])
    private let lastNumber = Guarded(0)
    private let session = Guarded("")
    private let loads = Guarded(0)

    private init(input: FileDescriptor, output: FileDescriptor) {
        self.input = input
        self.output = output
    }

    deinit {
        for pipe in [input, output] {
            // Nothing follows that would miss a failure.
            try? pipe.close()
        }
    }

    /// Starts the browser on a page and ends it after `body`.
    static func with(
        _ url: String,
        _ body: @escaping @Sendable (DevTools) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory("tieredcache-chromium")
        let pipes = ["in", "out"].map { directory.appending($0) }
        for pipe in pipes { try #require(mkfifo(pipe.string, 0o600) == 0) }
        let arguments = [
            "-c", #"in=$1 out=$2; shift 2; exec "$0" "$@" 3<"$in" 4>"$out""#,
            try #require(PlayerTool.chromium.path).string, pipes[0].string, pipes[1].string,
            "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--remote-debugging-pipe",
            "--user-data-dir=\(directory.appending("profile").string)", "about:blank",
        ]
        try await PlayerTool.shell.running(arguments) {
            // Opened so, neither waits for a browser that may never come.
            let input = try FileDescriptor.open(pipes[0], .readWrite)
            let output = try FileDescriptor.open(pipes[1], .readOnly, options: .nonBlocking)
            let page = DevTools(input: input, output: output)
            try await page.attach(url)
            try await body(page)
        }
    }

    private func attach(_ url: String) async throws {
        let target = try await call("Target.createTarget", ["url": "about:blank"])
        let identifier = try #require(target["targetId"] as? String)
        let attached = try await call(
            "Target.attachToTarget",
            ["targetId": identifier, "flatten": true]
        )
        session.withLock { $0 = attached["sessionId"] as? String ?? "" }
        _ = try await call("Page.enable", [:])
        try await navigate(url)
    }

    /// Goes to another page, and waits until it has been loaded; what is saved instead leads
    /// nowhere.
    func navigate(_ url: String) async throws {
        let before = loadCount
        let answer = try await call("Page.navigate", ["url": url])
        guard answer["errorText"] == nil else { return }
        try await waitForLoad(after: before)
    }

    /// Asks again and again until an expression is true on a page that stays.
    func askUntil(_ expression: String) async throws {
        while try await evaluate("Boolean(\(expression))") != "true" {}
    }

    /// What an expression says on the page, as text.
    ///
    /// Where the page is just being loaded anew, it is asked again when that is done.
    func evaluate(_ expression: String) async throws -> String {
        while true {
            let before = loadCount
            if let value = try await valueNow(expression) { return value }
            try await waitForLoad(after: before)
        }
    }

    private func valueNow(_ expression: String) async throws -> String? {
        let result: [String: Any]
        do {
            result = try await call(
                "Runtime.evaluate",
                ["expression": "String(\(expression))", "returnByValue": true]
            )
        } catch is Refusal {
            return nil
        }
        return (result["result"] as? [String: Any])?["value"] as? String
    }

    /// Presses the button of a form, as a person would, until something is true on the page.
    ///
    /// The page loads itself anew and may do so at the moment of a press.
    func press(_ action: String, until expression: String) async throws {
        while try await evaluate("Boolean(\(expression))") != "true" {
            let button = "document.querySelector('form[action=\(action)] button')"
            let before = loadCount
            // Later, since the answer to this would not outlive the page.
            _ = try await evaluate("setTimeout(() => \(button)?.click(), 0)")
            try await waitForLoad(after: before)
        }
    }

    /// Waits until an expression is true on the page, which loads itself anew now and then.
    func waitUntil(_ expression: String) async throws {
        while true {
            let before = loadCount
            if try await evaluate("Boolean(\(expression))") == "true" { return }
            try await waitForLoad(after: before)
        }
    }

    /// How many pages have been loaded.
    private var loadCount: Int { loads.withLock { $0 } }

    /// Waits until one more page has been loaded than before.
    ///
    /// The event may come before the answer of the call that led to it, so events are counted.
    private func waitForLoad(after count: Int) async throws {
        while loadCount == count { _ = try await nextMessage() }
    }

    private func call(_ method: String, _ parameters: [String: Any]) async throws -> [String: Any] {
        let number = lastNumber.withLock { number in
            number += 1
            return number
        }
        var message: [String: Any] = ["id": number, "method": method, "params": parameters]
        let session = session.withLock { $0 }
        if !session.isEmpty { message["sessionId"] = session }
        let bytes = try JSONSerialization.data(withJSONObject: message) + [0]
        let input = input
        try await io.run { () throws(any Error) in _ = try input.writeAll(bytes) }
        while true {
            let answer = try await nextMessage()
            guard answer["id"] as? Int == number else { continue }
            guard let result = answer["result"] as? [String: Any] else {
                throw Refusal(what: "\(method): \(answer)")
            }
            return result
        }
    }

    private func nextMessage() async throws -> [String: Any] {
        while true {
            let message = unread.withLock { unread -> [UInt8]? in
                guard let end = unread.firstIndex(of: 0) else { return nil }
                defer { unread.removeSubrange(...end) }
                return Array(unread[..<end])
            }
            if let message {
                let object = try JSONSerialization.jsonObject(with: Data(message))
                let fields = object as? [String: Any] ?? [:]
                if fields["method"] as? String == "Page.loadEventFired" {
                    loads.withLock { $0 += 1 }
                }
                return fields
            }
            try Task.checkCancellation()
            let output = output
            let bytes = try await io.run { () throws(any Error) in
                var event = pollfd(fd: output.rawValue, events: Int16(POLLIN), revents: 0)
                guard poll(&event, 1, Self.patience) == 1 else {
                    throw Failure(what: "the browser says nothing for a minute")
                }
                var room = [UInt8](repeating: 0, count: 65_536)
                let count = try room.withUnsafeMutableBytes { try output.read(into: $0) }
                return Array(room[..<count])
            }
            guard !bytes.isEmpty else { throw Failure(what: "the browser has gone") }
            unread.withLock { $0 += bytes }
        }
    }
}
