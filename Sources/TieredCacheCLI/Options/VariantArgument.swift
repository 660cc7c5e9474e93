import ArgumentParser
import TieredCacheProxy

/// The argument of `--variant`: the variants of a presentation to fetch.
struct VariantArgument: ExpressibleByArgument {
    let choice: VariantChoice

    init(choice: VariantChoice) {
        self.choice = choice
    }

    init?(argument: String) {
        guard let choice = VariantChoice(argument) else { return nil }
        self.choice = choice
    }

    var defaultValueDescription: String { "all" }
}
