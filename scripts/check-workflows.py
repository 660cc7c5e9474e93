#!/usr/bin/env python3
"""Checks the workflow files below .github without running them, and that its other files are YAML.

Of a workflow: it is YAML without doubled keys; each job has a runner and steps; each step either uses an
action of a stated version or runs a script that `bash -n` accepts; each `matrix.NAME` is one of its job's;
each `make TARGET`, also one from the matrix, is a target of the Makefile; each job that is needed exists.
Prints FILE: what is wrong, and exits with 1 then.
"""
import pathlib
import re
import subprocess
import sys

import yaml

root = pathlib.Path(__file__).resolve().parent.parent
wrong = []


class Loader(yaml.SafeLoader):
    """Refuses a key that occurs twice in one mapping, which YAML forbids and its parsers allow."""


def mapping(loader, node):
    keys = [loader.construct_object(key) for key, _ in node.value]
    for key in {key for key in keys if keys.count(key) > 1}:
        raise yaml.MarkedYAMLError(problem=f"the key {key!r} occurs twice", problem_mark=node.start_mark)
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)


Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)


def complain(file, text):
    wrong.append(f"{file.relative_to(root)}: {text}")


def load(file):
    try:
        return yaml.load(file.read_text(encoding="utf-8"), Loader)
    except yaml.YAMLError as error:
        complain(file, " ".join(str(error).split()))
        return None


def combinations(job):
    """What `matrix.NAME` may be in a job: its values by name."""
    matrix = (job.get("strategy") or {}).get("matrix") or {}
    values = {name: [str(value) for value in choice] for name, choice in matrix.items()
              if name not in ("include", "exclude")}
    for extra in matrix.get("include", []):
        for name, value in extra.items():
            values.setdefault(name, []).append(str(value))
    return values


def spelled(text, matrix):
    """A text with each value of the matrix put in; other expressions become a word."""
    names = [name for name in matrix if re.search(r"\$\{\{\s*matrix\." + name + r"\s*\}\}", text)]
    texts = [text]
    for name in names:
        pattern = r"\$\{\{\s*matrix\." + name + r"\s*\}\}"
        texts = [re.sub(pattern, value, one) for one in texts for value in matrix[name]]
    return [re.sub(r"\$\{\{.*?\}\}", "EXPRESSION", one) for one in texts]


def check_step(file, place, step, matrix, targets):
    if not isinstance(step, dict) or ("uses" in step) == ("run" in step):
        complain(file, f"{place}: a step either uses an action or runs a script")
        return
    if "uses" in step:
        if not re.fullmatch(r"\./\S+|[\w.-]+/[\w./-]+@[\w.-]+", str(step["uses"])):
            complain(file, f"{place}: {step['uses']!r} does not name an action and its version")
        return
    for script in spelled(str(step["run"]), matrix):
        parsed = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
        if parsed.returncode:
            complain(file, f"{place}: {parsed.stderr.strip()}")
        for target in re.findall(r"(?:^|[;&|]\s*)make +([\w-]+)", script, re.MULTILINE):
            if target not in targets:
                complain(file, f"{place}: the Makefile has no target {target!r}")


def check_job(file, name, job, jobs, targets):
    if not isinstance(job, dict) or "runs-on" not in job or not job.get("steps"):
        complain(file, f"{name}: a job has runs-on and steps")
        return
    matrix = combinations(job)
    for used in set(re.findall(r"\$\{\{[^}]*?matrix\.([\w-]+)", yaml.safe_dump(job))):
        if used not in matrix:
            complain(file, f"{name}: the matrix has no {used!r}")
    needs = job.get("needs", [])
    for needed in [needs] if isinstance(needs, str) else needs:
        if needed not in jobs:
            complain(file, f"{name}: it needs {needed!r}, which is no job")
    for number, step in enumerate(job["steps"], start=1):
        check_step(file, f"{name}, step {number}", step, matrix, targets)


def check_workflow(file, targets):
    workflow = load(file)
    if not isinstance(workflow, dict):
        complain(file, "this is no mapping")
        return
    # YAML 1.1 reads the key `on` as true.
    for key in [key for key in ("name", True, "jobs") if not workflow.get(key)]:
        complain(file, f"it has no {'on' if key is True else key!r}")
    jobs = workflow.get("jobs") or {}
    for name, job in jobs.items():
        check_job(file, name, job, jobs, targets)


def main():
    targets = set(re.findall(r"^([\w-]+):", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    workflows = sorted((root / ".github" / "workflows").glob("*.yml"))
    others = sorted((root / ".github" / "ISSUE_TEMPLATE").glob("*.yml")) + [root / ".spi.yml"]
    for file in workflows:
        check_workflow(file, targets)
    for file in others:
        load(file)
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        sys.exit(1)
    print(f"check-workflows: {len(workflows)} workflows and {len(others)} other files are well formed")


main()
