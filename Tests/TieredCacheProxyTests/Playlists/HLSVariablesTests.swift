import HTTPCaching
import Testing

@testable import TieredCacheProxy

@Suite(.timeLimit(.minutes(10)))
struct HLSVariablesTests {
    private func variables(
        _ text: String,
        at location: String = "https://a.example/m.m3u8?token=a%2Fb&empty=&token=c",
        importing imported: HLSVariables = HLSVariables()
    ) throws -> HLSVariables {
        HLSVariables(Array(text.utf8), at: try TargetURI(location), importing: imported)
    }

    private func put(_ variables: HLSVariables, into text: String) -> String? {
        var budget = PlaylistBudget(forLength: text.utf8.count)
        return variables.substituted(text.utf8, budget: &budget).map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    @Test("Values come from the playlist, from the one that led to it, and from its URL")
    func sources() throws {
        let master = try variables("#EXTM3U\n#EXT-X-DEFINE:NAME=\"cdn\",VALUE=\"https://c/x\"\n")
        let media = try variables(
            """
            #EXTM3U\r
            #EXT-X-DEFINE:IMPORT="cdn"\r
            #EXT-X-DEFINE:QUERYPARAM="token"\r
            #EXT-X-DEFINE:NAME="v-1_B",VALUE="7"\r
            """,
            importing: master
        )
        #expect(put(media, into: "{$cdn}/{$v-1_B}.ts?t={$token}") == "https://c/x/7.ts?t=a/b")
        #expect(put(media, into: "plain.ts") == nil)
        #expect(put(media, into: "{$unknown}/{$cdn}") == nil)
    }

    @Test(
        "What is no definition, or no part of an address, defines nothing",
        arguments: [
            "#EXT-X-DEFINE:NAME=\"a\"", "#EXT-X-DEFINE:VALUE=\"x\"", "#EXT-X-DEFINE:IMPORT=\"a\"",
            "#EXT-X-DEFINE:QUERYPARAM=\"a\"", "#EXT-X-DEFINE:NAME=\"a\",VALUE=\"x\ty\"",
            "#EXT-X-DEFINED:NAME=\"a\",VALUE=\"x\"", "#EXT-X-DEFINE:",
        ]
    )
    func nothing(_ line: String) throws {
        #expect(put(try variables("#EXTM3U\n\(line)\n"), into: "{$a}/1.ts") == nil)
    }

    @Test("Escapes that would end the line are no part of an address")
    func injections() throws {
        let location = "https://a.example/m.m3u8?a=x%0D%0A%23EXT&b=%22&c=ok"
        let text =
            "#EXT-X-DEFINE:QUERYPARAM=\"a\"\n#EXT-X-DEFINE:QUERYPARAM=\"b\"\n"
            + "#EXT-X-DEFINE:QUERYPARAM=\"c\"\n"
        let found = try variables(text, at: location)
        #expect(put(found, into: "{$a}") == nil)
        #expect(put(found, into: "{$b}") == nil)
        #expect(put(found, into: "{$c}") == "ok")
    }

    @Test("Of several values of one name the first counts, and many do not grow without end")
    func bounds() throws {
        let long = String(repeating: "x", count: 4000)
        let found = try variables(
            "#EXT-X-DEFINE:NAME=\"a\",VALUE=\"\(long)\"\n#EXT-X-DEFINE:NAME=\"a\",VALUE=\"y\"\n"
        )
        #expect(put(found, into: "{$a}") == long)
        #expect(put(found, into: String(repeating: "{$a}", count: 5)) == nil)
        #expect(put(found, into: "{$a") == nil)
        #expect(put(found, into: "{}{$a}") == "{}" + long)
    }
}
