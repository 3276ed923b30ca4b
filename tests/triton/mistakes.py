"""How many mistakes in whole programs `tile check` finds, where Triton itself says what a mistake is; without a GPU.

    python tests/triton/mistakes.py break SET [--most N] [NAME...]
    python tests/triton/mistakes.py apply SET ID TARGET
    python tests/triton/mistakes.py judge SET [--most N] [--seconds N] [--again] [NAME...]
    python tests/triton/mistakes.py score PATH_TO_TILE SET [--json OUT]

SET is a folder of programs, each a folder of Python files of which `main.py` is run. `break` writes NAME.breaks.json
beside each: changes in one place each, of which `apply` makes one in a copy. `judge` runs every program as it is and
with each of its changes under Triton's front end and Triton's interpreter, and writes NAME.verdicts.json: what the change
does is the first of these.

    compile     Triton refuses the kernel or the launch
    bounds      a lane that is not masked off leaves the storage of the tensor that its pointer came from
    race        two programs of a launch, or lanes of a store, use an address in a way that depends on their order
    unwritten   an element that is written without the change is not
    raises      the program raises otherwise, or does not end
    values      what the program computes differs, or a comparison of its own fails
    equal       nothing of this
    unreached   the statement does not run, which says nothing

`score` runs `tile check` on every program as it is and with each change. What counts is an error or a warning that it has
only with the change. It prints how many changes are found, by family and by verdict, and how many that are `equal` are
blamed. With `--json`, OUT.missed and OUT.alarms list these, and OUT has all that was found.
`judge` needs a Python that has Triton 3.6, PyTorch and NumPy before 2.4.
"""

import argparse
import collections
import json
import subprocess
import tempfile
from pathlib import Path

from breakages import FAMILIES, breakages, with_change

VERDICTS = ("compile", "bounds", "race", "unwritten", "raises", "values", "equal", "unreached")


def programs_of(folder, names):
    found = sorted(main.parent for main in folder.glob("*/main.py"))
    return [program for program in found if not names or program.name in names]


def beside(program, kind):
    return program.with_name(f"{program.name}.{kind}.json")


def read(program, kind):
    return json.loads(beside(program, kind).read_text(encoding="utf-8"))


def write(program, kind, rows):
    text = ",\n".join(json.dumps(row) for row in rows)
    beside(program, kind).write_text(f"[\n{text}\n]\n", encoding="utf-8")


def break_all(arguments):
    for program in programs_of(arguments.set, arguments.names):
        changes = breakages(program, arguments.most)
        write(program, "breaks", changes)
        print(f"{program.name}: {len(changes)} changes")


def apply_one(arguments):
    program = arguments.set / arguments.id.rpartition("-")[0]
    change = next(change for change in read(program, "breaks") if change["id"] == arguments.id)
    with_change(program, change, arguments.target)


def judge_all(arguments):
    from judging import judge  # needs Triton

    for program in programs_of(arguments.set, arguments.names):
        if beside(program, "verdicts").exists() and not arguments.again:
            continue
        rows = list(judge(program, read(program, "breaks"), arguments.seconds, arguments.most))
        write(program, "verdicts", rows)
        counts = collections.Counter(row["verdict"] for row in rows[1:])
        print(f"{program.name}: {rows[0]['verdict']} ({rows[0]['detail']}), {rows[0]['seconds']} s;",
              ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS), flush=True)


def findings(tile, folder):
    """The errors and warnings below `folder`, as a count of (file, line, code, message)."""
    command = [str(tile), "check", "--no-cache", "--format", "json", "."]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout
    return collections.Counter(
        (row["file"], row["range"]["start"]["line"], row["code"], row["message"])
        for row in map(json.loads, said.splitlines()) if row.get("severity") in ("error", "warning"))


def found_in(tile, program, change, before):
    """The findings that the program has with a change and not without."""
    with tempfile.TemporaryDirectory() as parent:
        copy = Path(parent) / program.name
        with_change(program, change, copy)
        return findings(tile, copy) - before


def score_one(tile, program):
    """Per change of a program: its row of verdicts with what is found."""
    changes = {change["id"]: change for change in read(program, "breaks")}
    before = found_in(tile, program, None, collections.Counter())
    for row in read(program, "verdicts"):
        if row["id"] and row["verdict"] != "unreached":
            found = found_in(tile, program, changes[row["id"]], before)
            yield {"program": program.name, **row, "found": sorted(map(list, found))}


def table(rows, key, names):
    """Prints how many of the mistakes are found for each value of `key`."""
    for name in names:
        wrong = [row for row in rows if row[key] == name]
        found = sum(bool(row["found"]) for row in wrong)
        print(f"  {name:10} {found:5} of {len(wrong):5} {found / max(1, len(wrong)):8.1%}")


def score_all(arguments):
    rows = []
    for program in programs_of(arguments.set, ()):
        rows += score_one(arguments.tile.resolve(), program)
    wrong = [row for row in rows if row["verdict"] not in ("equal", "unreached")]
    equal = [row for row in rows if row["verdict"] == "equal"]
    missed = [row for row in wrong if not row["found"]]
    alarms = [row for row in equal if row["found"]]
    for key, names in (("family", FAMILIES), ("verdict", VERDICTS[:-2])):
        print(f"found by {key}:")
        table(wrong, key, names)
    share = (len(wrong) - len(missed)) / max(1, len(wrong))
    print(f"found: {len(wrong) - len(missed)} of {len(wrong)}, {share:.1%};",
          f"blamed of those that do no harm: {len(alarms)} of {len(equal)}")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
        lists = {"missed": missed, "alarms": alarms}
        for kind, listed in lists.items():
            columns = ("program", "id", "family", "operator", "verdict")
            lines = [" ".join(row[column] for column in columns) for row in listed]
            Path(f"{arguments.json}.{kind}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, dest="command")
    breaking = commands.add_parser("break")
    breaking.set_defaults(run=break_all)
    breaking.add_argument("set", type=Path)
    breaking.add_argument("names", nargs="*", help="of the programs, without any all")
    breaking.add_argument("--most", type=int, default=90, help="changes per program")
    applying = commands.add_parser("apply")
    applying.set_defaults(run=apply_one)
    applying.add_argument("set", type=Path)
    applying.add_argument("id")
    applying.add_argument("target", type=Path)
    judging = commands.add_parser("judge")
    judging.set_defaults(run=judge_all)
    judging.add_argument("set", type=Path)
    judging.add_argument("names", nargs="*", help="of the programs, without any all that have no verdicts")
    judging.add_argument("--most", type=int, default=45, help="changes per program, but those that do not run")
    judging.add_argument("--seconds", type=int, default=20, help="for each run")
    judging.add_argument("--again", action="store_true", help="also those that have verdicts")
    scoring = commands.add_parser("score")
    scoring.set_defaults(run=score_all)
    scoring.add_argument("tile", type=Path)
    scoring.add_argument("set", type=Path)
    scoring.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    arguments.set = arguments.set.resolve()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
