#!/usr/bin/env python3
"""Tests of compare.py; scripts/test-scripts.sh runs them."""
import contextlib
import io
import json
import pathlib
import tempfile
import unittest

import compare


class CompareTests(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)

    def row(self, name, ratio, peer="peer"):
        return {"row": name, "peer": peer, "ratio": ratio}

    def compare(self, baseline, run, *arguments):
        """Status and output of the program for rows, or for text."""
        files = [self.place / "baseline.json", self.place / "run.json"]
        files[0].write_text(baseline if isinstance(baseline, str) else json.dumps({"rows": baseline}))
        files[1].write_text(run if isinstance(run, str) else "".join(json.dumps(row) + "\n" for row in run))
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            status = compare.main([str(files[1]), "--baseline", str(files[0]), *arguments])
        return status, output.getvalue()

    def test_a_row_is_worse_beyond_the_share_only(self):
        baseline = [self.row("a", 1.0), self.row("b", 1.0), self.row("c", 1.0)]
        status, output = self.compare(baseline, [self.row("a", 1.15), self.row("b", 1.16), self.row("c", 0.5)])
        self.assertEqual(status, 1)
        self.assertEqual([line for line in output.splitlines() if line.startswith("WORSE")],
                         ["WORSE  b / peer: 1.16, baseline 1.00 (+16%)"])
        self.assertIn("1 of 3 rows are worse by more than 15%", output)

    def test_the_share_is_an_argument(self):
        pair = [self.row("a", 1.0)], [self.row("a", 1.25)]
        self.assertEqual(self.compare(*pair, "--share", "0.3")[0], 0)
        self.assertEqual(self.compare(*pair, "--share", "0.2")[0], 1)

    def test_rows_are_told_apart_by_peer(self):
        baseline = [self.row("a", 1.0, "x"), self.row("a", 2.0, "y")]
        self.assertEqual(self.compare(baseline, [self.row("a", 1.0, "x"), self.row("a", 2.0, "y")])[0], 0)
        status, output = self.compare(baseline, [self.row("a", 2.0, "x"), self.row("a", 2.0, "y")])
        self.assertEqual(status, 1)
        self.assertIn("WORSE  a / x", output)
        self.assertNotIn("WORSE  a / y", output)

    def test_rows_of_one_side_are_named_and_change_nothing(self):
        status, output = self.compare([self.row("a", 1.0), self.row("b", 1.0)], [self.row("a", 1.0), self.row("c", 9)])
        self.assertEqual(status, 0)
        self.assertIn("only in the baseline: b / peer", output)
        self.assertIn("only in the run: c / peer", output)

    def test_a_run_without_a_known_row_does_not_pass(self):
        self.assertEqual(self.compare([self.row("a", 1.0)], [self.row("b", 1.0)])[0], 1)

    def test_what_is_no_run_is_refused(self):
        for run in ["", "{", "[]", "7", '{"row": "a", "ratio": 1}', '{"row": "a", "peer": "p", "ratio": "1"}',
                    '{"row": "a", "peer": "p", "ratio": 0}', '{"row": "a", "peer": "p", "ratio": NaN}',
                    '{"row": "a", "peer": "p", "ratio": true}']:
            status, output = self.compare([self.row("a", 1.0)], run)
            self.assertEqual(status, 65, run)
            self.assertTrue(output.startswith("compare: "), output)
        self.assertEqual(self.compare([self.row("a", 1.0)], [self.row("a", 1), self.row("a", 2)])[0], 65)

    def test_what_is_no_baseline_is_refused(self):
        for baseline in ["", "[]", "{}", '{"rows": 1}', '{"rows": [1]}']:
            self.assertEqual(self.compare(baseline, [self.row("a", 1.0)])[0], 65, baseline)

    def test_an_accepted_run_is_the_baseline_and_keeps_other_rows(self):
        status, _ = self.compare([self.row("a", 1.0), self.row("b", 2.0)], [self.row("a", 1.5), self.row("c", 3)],
                                 "--accept")
        self.assertEqual(status, 0)
        self.assertEqual(compare.read_baseline(self.place / "baseline.json"),
                         {("a", "peer"): 1.5, ("b", "peer"): 2.0, ("c", "peer"): 3})

    def test_where_a_baseline_comes_from_stays_while_rows_stay(self):
        old = json.dumps({"about": "By hand.", "rows": [self.row("a", 1.0), self.row("b", 2.0)]})
        self.compare(old, [self.row("a", 1.5)], "--accept")
        self.assertIn('"about": "By hand."', (self.place / "baseline.json").read_text())
        self.compare(old, [self.row("a", 1.5), self.row("b", 2.5)], "--accept")
        self.assertIn(compare.ABOUT, (self.place / "baseline.json").read_text())

    def test_the_committed_baseline_can_be_read(self):
        self.assertGreater(len(compare.read_baseline(compare.BASELINE)), 20)


if __name__ == "__main__":
    unittest.main()
