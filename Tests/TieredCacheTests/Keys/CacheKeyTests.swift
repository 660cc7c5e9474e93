import HTTPCaching
import Testing

@_spi(Benchmarks) @testable import TieredCache

@Suite("CacheKey", .timeLimit(.minutes(10)))
struct CacheKeyTests {
    @Test
    func `Canonically equivalent strings are different keys`() {
        let composed = CacheKey(explicit: "caf\u{e9}")
        let decomposed = CacheKey(explicit: "cafe\u{301}")
        #expect(composed.string == decomposed.string)
        #expect(composed != decomposed)
        #expect(composed.fileName != decomposed.fileName)
        #expect(Set([composed, decomposed]).count == 2)
    }

    @Test(arguments: ["", "x", "fifteen bytes !", "sixteen bytes !!", "日本語 🎬 \u{0}\u{7f}"])
    func `Equal bytes are equal keys`(name: String) {
        let bytes = Array(name.utf8)
        let copy = String(decoding: bytes, as: UTF8.self)
        #expect(CacheKey(explicit: name) == CacheKey(explicit: copy))
        #expect(CacheKey(explicit: name).hashValue == CacheKey(explicit: copy).hashValue)
        #expect(CacheKey(explicit: name) != CacheKey(explicit: name + " "))
    }

    @Test
    func `A key of a megabyte is as good as a short one`() {
        let long = String(repeating: "ä", count: 500_000)
        #expect(CacheKey(explicit: long) == CacheKey(explicit: long))
        #expect(CacheKey(explicit: long + "a") != CacheKey(explicit: long + "b"))
        #expect(CacheKey(explicit: long).fileName.utf8.count == 32)
    }

    @Test
    func `A stored key is the key that was stored`() {
        let key = CacheKey(explicit: "a\u{301}", method: "POST", partition: "user 7")
        let restored = CacheKey(stored: key.string)
        #expect(restored == key)
        #expect(restored.hash == key.hash)
        #expect(restored.digest == key.digest)
    }

    @Test
    func `A chosen name never equals a URL's key`() throws {
        let target = try TargetURI("http://example.com/a")
        let url = CacheKey(target)
        #expect(url != CacheKey(explicit: "http://example.com/a"))
        #expect(url != CacheKey(explicit: url.string))
    }

    @Test
    func `Methods and partitions keep keys apart`() throws {
        let target = try TargetURI("http://example.com/a")
        let keys = [
            CacheKey(explicit: "n"), CacheKey(explicit: "n", method: "POST"),
            CacheKey(explicit: "n", partition: ""), CacheKey(explicit: "n", partition: "p"),
            CacheKey(target), CacheKey(target, partition: ""), CacheKey(target, partition: "p"),
        ]
        #expect(Set(keys).count == keys.count)
    }

    @Test
    func `What a partition ends with cannot be moved into the name`() {
        let keys = [
            CacheKey(explicit: "c", partition: "a b"), CacheKey(explicit: "b c", partition: "a"),
            CacheKey(explicit: "c", partition: "a GET key:b"),
            CacheKey(explicit: "b GET key:c", partition: "a"),
            CacheKey(explicit: "x", partition: "1:a"), CacheKey(explicit: "a x", partition: "1:"),
        ]
        #expect(Set(keys).count == keys.count)
    }

    @Test
    func `What a method holds cannot be moved into the name or the partition`() {
        let methods = [
            CacheKey(explicit: "n", method: "A key:b"),
            CacheKey(explicit: "b key:n", method: "A"),
            CacheKey(explicit: "x", method: "partition 1:a GET"),
            CacheKey(explicit: "x", partition: "a"),
            CacheKey(explicit: "x", method: ""),
        ]
        #expect(Set(methods).count == methods.count)
    }

    @Test
    func `The file name is md5sum's of the text`() {
        #expect(CacheKey(stored: "abc").fileName == "900150983cd24fb0d6963f7d28e17f72")
        #expect(CacheKey(stored: "").fileName == "d41d8cd98f00b204e9800998ecf8427e")
    }
}
