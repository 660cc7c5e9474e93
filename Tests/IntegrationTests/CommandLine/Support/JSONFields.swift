import Foundation

/// The members of one line of JSON that the program has printed; none where it is no object.
struct JSONFields {
    private enum Member: Decodable {
        case text(String)
        case flag(Bool)
        case whole(Int64)
        case number(Double)
        case null
        /// A list or an object.
        case other

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            guard !container.decodeNil() else {
                self = .null
                return
            }
            self = Self.first(of: [
                { .text(try container.decode(String.self)) },
                { .flag(try container.decode(Bool.self)) },
                { .whole(try container.decode(Int64.self)) },
                { .number(try container.decode(Double.self)) },
            ])
        }

        /// A decoder tells the type of a value only by failing for the others.
        private static func first(of attempts: [() throws -> Member]) -> Member {
            for attempt in attempts {
                do {
                    return try attempt()
                } catch {
                    continue
                }
            }
            return .other
        }
    }

    private let members: [String: Member]

    init(_ line: some StringProtocol) {
        do {
            members = try JSONDecoder().decode([String: Member].self, from: Data(line.utf8))
        } catch {
            members = [:]  // Each test expects a member, which is not there then.
        }
    }

    /// The text of a string, or of a number, a Boolean or null as it is written.
    func text(_ name: String) -> String? {
        switch members[name] {
        case .text(let text): text
        case .flag(let flag): "\(flag)"
        case .whole(let whole): "\(whole)"
        case .number(let number): "\(number)"
        case .null: "null"
        case .other, nil: nil
        }
    }

    /// A whole number.
    func integer(_ name: String) -> Int64? {
        guard case .whole(let value)? = members[name] else { return nil }
        return value
    }
}
