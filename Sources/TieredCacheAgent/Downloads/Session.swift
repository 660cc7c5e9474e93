package import OrderedCollections
import TieredCache

/// The downloads of one application, which it finds again by a name of its choice.
///
/// Each of them ends in one result, which stays until the application acknowledges it. States:
/// attached, while a connection of the application is; else unfinished, until the last of its
/// downloads has stopped; then due, until the command of the session has run or an application
/// attaches. docs/agent-protocol.md has the transitions.
package struct Session: Hashable, Sendable {
    /// How long an application has to attach, where it was there when its downloads ended, or the
    /// agent was not.
    static let patience = Duration.seconds(60)
    /// Up to so many are cheaper to take out one by one than by a look at all, near the front.
    static let few = 16
    /// Dates before this one, 2025-01-01, come from a clock that was not set, and say nothing.
    private static let earliestDate: Int64 = 1_735_689_600
    /// How long a result stays that is not acknowledged, in seconds: 90 days.
    static let lifetime: Int64 = 90 * 24 * 3600

    /// A download that has stopped.
    package struct Result: Hashable, Sendable {
        /// How it ended.
        package let event: DownloadEvent
        /// When, in seconds since 1970.
        let date: Int64
    }

    /// What outlives the process of a session beside its downloads.
    package struct Record: Codable, Hashable, Sendable {
        package let name: String
        /// The program that is run when all have ended and no application is there, with its
        /// arguments.
        package var command: [String]
        /// Whether it has been run since an application was attached last.
        package var hasRun = false
    }

    package private(set) var record: Record
    /// How many connections are attached.
    package private(set) var attachments = 0
    /// Its downloads that have not stopped.
    package private(set) var unfinished: Set<GID> = []
    /// Its results, in the order in which they came.
    package private(set) var results: OrderedDictionary<GID, Result> = [:]
    /// When the command is run, unless an application attaches before.
    private var due: MonotonicTime?
    /// Whether its command was set for downloads that have not come yet.
    private(set) var isExpecting = false

    init(_ record: Record) {
        self.record = record
        isExpecting = !record.command.isEmpty
    }

    init(name: String) {
        self.init(Record(name: name, command: []))
    }

    /// The most connections that attach to it: each may have all of its results waiting.
    static let maximumAttachments = 16

    /// Whether nothing of it is worth remembering.
    var isOver: Bool { isIdle && !isExpecting }

    /// Whether there is nothing in it but a command.
    var isIdle: Bool { attachments == 0 && unfinished.isEmpty && results.isEmpty }

    /// Whether all of it has ended, and its application does not know.
    private var hasNews: Bool { unfinished.isEmpty && !results.isEmpty }

    /// Whether the command will be run without anything else happening.
    var awaitsRun: Bool { due != nil && canRun }

    private var canRun: Bool {
        attachments == 0 && hasNews && !record.hasRun && !record.command.isEmpty
    }

    mutating func set(command: [String]) {
        record.command = command
        isExpecting = !command.isEmpty
    }

    mutating func add(_ gid: GID) {
        unfinished.insert(gid)
        due = nil
        isExpecting = false
    }

    /// One has stopped: an application that is not there is to be started at once.
    mutating func didStop(_ gid: GID, _ result: Result, now: MonotonicTime) {
        unfinished.remove(gid)
        results[gid] = result
        due = hasNews && attachments == 0 ? now : nil
    }

    /// Takes over a result of an earlier process.
    mutating func restore(_ gid: GID, _ result: Result) {
        results[gid] = result
        isExpecting = false
    }

    /// The process begins: applications have their time to attach.
    mutating func begin(now: MonotonicTime) {
        due = hasNews ? now.advanced(by: Self.patience) : nil
    }

    mutating func attach() {
        attachments += 1
        record.hasRun = false
        due = nil
    }

    mutating func detach(now: MonotonicTime) {
        attachments -= 1
        if attachments == 0, hasNews { due = now.advanced(by: Self.patience) }
    }

    /// Forgets results.
    ///
    /// - Returns: those that it had.
    mutating func acknowledge(_ gids: some Sequence<GID>) -> Set<GID> {
        let gone = Set(gids.filter { results[$0] != nil })
        guard !gone.isEmpty else { return [] }
        if gone.count <= Self.few {
            for gid in gone { results.removeValue(forKey: gid) }
        } else {
            results.removeAll { gone.contains($0.key) }
        }
        if results.isEmpty { due = nil }
        return gone
    }

    /// Whether the command has to be run now; it counts as run then.
    mutating func takeRun(now: MonotonicTime) -> Bool {
        guard let due, due <= now, canRun else { return false }
        record.hasRun = true
        self.due = nil
        return true
    }

    /// The results that have stayed for too long.
    func expired(date: Int64) -> [GID] {
        results.elements.prefix { $0.value.date <= date - Self.lifetime }
            .filter { $0.value.date >= Self.earliestDate }.map(\.key)
    }
}

/// What an application can call a session, and what can be run for it.
package enum SessionForm {
    /// The most sessions with a command: all are in one record of the journal.
    static let maximumCommands = 128
    /// The most bytes of a command with its arguments.
    static let maximumCommand = 2048

    /// Whether it is a name: 1 to 128 ASCII letters, digits, and `-._`.
    package static func isName(_ text: String) -> Bool {
        (1...128).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                Character(Unicode.Scalar(byte)).isLetter && byte < 128
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                    || Array("-._".utf8).contains(byte)
            }
    }

    /// Whether it can be run: a program, which env(1) must not take for a variable, and no control
    /// characters, which have no use in it.
    package static func isCommand(_ words: [String]) -> Bool {
        guard let program = words.first, !program.isEmpty, !program.contains("=") else {
            return false
        }
        let bytes = words.joined(separator: " ").utf8
        return bytes.count <= maximumCommand && bytes.allSatisfy { $0 >= 32 && $0 != 127 }
    }
}
