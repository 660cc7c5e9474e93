import Foundation
import Testing

/// The table of RFC 9111's sentences must name tests that exist.
@Suite(.timeLimit(.minutes(10)))
struct NormativeTableTests {
    private static var root: URL {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
    }

    /// The functions of each test file, by the file's name without `.swift`.
    private static func testFunctions() throws -> [String: Set<String>] {
        let folder = root.appendingPathComponent("Tests")
        let files = try #require(
            FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
        )
        var functions: [String: Set<String>] = [:]
        for case let file as URL in files where file.pathExtension == "swift" {
            let text = try String(contentsOf: file, encoding: .utf8)
            let names = text.components(separatedBy: "func ").dropFirst().map {
                String($0.prefix { $0.isLetter || $0.isNumber || $0 == "_" })
            }
            functions[file.deletingPathExtension().lastPathComponent] = Set(names)
        }
        return functions
    }

    @Test("Each row names a test that exists, or says why there is none")
    func rows() throws {
        let table = Self.root.appendingPathComponent("docs/rfc9111.md")
        let text = try String(contentsOf: table, encoding: .utf8)
        let functions = try Self.testFunctions()
        let rows = text.split(separator: "\n").filter { $0.hasPrefix("| ") }.dropFirst(2)
        #expect(rows.count >= 60)
        for row in rows {
            let cells = row.split(separator: "|").map {
                $0.trimmingCharacters(in: CharacterSet.whitespaces)
            }
            try #require(cells.count == 3, "\(row)")
            guard !cells[2].hasPrefix("not applicable: ") else { continue }
            let tests = cells[2].components(separatedBy: ", ")
            #expect(!tests.isEmpty, "\(row)")
            for test in tests {
                let parts = test.trimmingCharacters(in: CharacterSet(charactersIn: "`")).components(
                    separatedBy: "."
                )
                try #require(parts.count == 2, "\(test) in \(row)")
                #expect(functions[parts[0]]?.contains(parts[1]) == true, "\(test) in \(row)")
            }
        }
    }
}
