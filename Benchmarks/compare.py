#!/usr/bin/env python3
"""Compares the ratios of a run of the benchmarks with the committed baseline, and names what became worse.

    Benchmarks/run.sh --json RUN             # the ratios of a run, an object a line
    Benchmarks/compare.py RUN                # exits with 1 where a row is worse than the baseline by 15 %
    Benchmarks/compare.py RUN --share 0.3    # by 30 %
    Benchmarks/compare.py RUN --accept       # makes the run the baseline; rows that it lacks stay, and the
                                             # sentence about where the baseline comes from with them

A ratio is our time divided by the peer's, so greater is worse. Rows that only one side has are named and
change nothing: a run of some rows is compared in those.
"""
import argparse
import json
import math
import pathlib
import sys

ABOUT = "Ratios of a run on a quiet machine with two cores, taken over by Benchmarks/compare.py --accept."
BASELINE = pathlib.Path(__file__).resolve().parent / "baseline.json"


class Unusable(Exception):
    """What was read is no run and no baseline."""


def ratios(rows, place):
    """Ratios by row and peer, of objects as the benchmarks write them."""
    found = {}
    for number, row in enumerate(rows, start=1):
        try:
            name, ratio = (row["row"], row["peer"]), row["ratio"]
        except (KeyError, TypeError):
            raise Unusable(f"{place}, row {number}: it needs row, peer and ratio") from None
        if isinstance(ratio, bool) or not isinstance(ratio, (int, float)) or not math.isfinite(ratio) or ratio <= 0:
            raise Unusable(f"{place}, row {number}: {ratio!r} is no ratio")
        if name in found:
            raise Unusable(f"{place}, row {number}: {' / '.join(name)} is there twice")
        found[name] = ratio
    return found


def read(path, parse):
    try:
        return ratios(parse(path.read_text(encoding="utf-8")), path.name)
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise Unusable(f"{path}: {error}") from None


def read_run(path):
    run = read(path, lambda text: [json.loads(line) for line in text.splitlines() if line.strip()])
    if not run:
        raise Unusable(f"{path}: there is no row in it")
    return run


def read_baseline(path):
    def rows(text):
        parsed = json.loads(text)
        if not isinstance(parsed, dict) or not isinstance(parsed.get("rows"), list):
            raise ValueError("a baseline is an object with rows")
        return parsed["rows"]

    return read(path, rows)


def worse(baseline, run, share):
    """The rows whose ratio is above the baseline's by more than a share of it."""
    return [name for name in baseline if name in run and run[name] > baseline[name] * (1 + share)]


def report(baseline, run, share):
    """What to print, and whether the run is as good as the baseline."""
    bad = worse(baseline, run, share)
    lines = []
    for name in baseline:
        if name not in run:
            continue
        change = run[name] / baseline[name] - 1
        verdict = "WORSE" if name in bad else "ok"
        lines.append(f"{verdict:5}  {name[0]} / {name[1]}: {run[name]:.2f}, baseline {baseline[name]:.2f} ({change:+.0%})")
    lines += [f"only in the baseline: {' / '.join(name)}" for name in baseline if name not in run]
    lines += [f"only in the run: {' / '.join(name)}" for name in run if name not in baseline]
    compared = sum(name in run for name in baseline)
    lines.append(f"compare: {len(bad)} of {compared} rows are worse by more than {share:.0%}")
    return lines, not bad and compared > 0


def accepted(baseline, run, about):
    """The text of a baseline that has the run's ratios."""
    merged = {**baseline, **run}
    about = about if baseline.keys() - run.keys() else ABOUT
    rows = [json.dumps({"row": row, "peer": peer, "ratio": round(ratio, 3)}, ensure_ascii=False)
            for (row, peer), ratio in merged.items()]
    return '{\n  "about": ' + json.dumps(about) + ',\n  "rows": [\n    ' + ",\n    ".join(rows) + "\n  ]\n}\n"


def main(arguments):
    parser = argparse.ArgumentParser(description="Names benchmark rows that became worse than the baseline.")
    parser.add_argument("run", type=pathlib.Path, help="what Benchmarks/run.sh --json has written")
    parser.add_argument("--baseline", type=pathlib.Path, default=BASELINE)
    parser.add_argument("--share", type=float, default=0.15, help="how much worse is too much (0.15)")
    parser.add_argument("--accept", action="store_true", help="make the run the baseline")
    options = parser.parse_args(arguments)
    if not 0 <= options.share < math.inf:
        parser.error("--share is a number from 0 on")
    try:
        baseline, run = read_baseline(options.baseline), read_run(options.run)
    except Unusable as error:
        print(f"compare: {error}", file=sys.stderr)
        return 65
    if options.accept:
        about = json.loads(options.baseline.read_text(encoding="utf-8")).get("about", ABOUT)
        options.baseline.write_text(accepted(baseline, run, about), encoding="utf-8")
        return 0
    lines, is_good = report(baseline, run, options.share)
    print("\n".join(lines))
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
