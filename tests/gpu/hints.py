"""Measures what each hint of the family `perf` is worth.

The explanation of a hint (`tile explain CODE`) has a wrong and a right example. This times both with
`tile bench` on the local GPU and prints how many times faster the right one is:

    python3 tests/gpu/hints.py target/release/tile [PAGE.md...]

Without pages, those of all hints. It fails where a hint is worth less than 1.3.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PAGES = Path(__file__).parents[2] / "crates/compiler/src/diagnostic/explain"
IMPORTS = "import triton\nimport triton.language as tl\n\n"
LEAST_GAIN = 1.3


def examples(page: Path) -> list[str]:
    """The code of the wrong and the right example."""
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.S)


def milliseconds(tile: str, code: str) -> float:
    """The median time of the kernel in `code`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.py"
        path.write_text(IMPORTS + code)
        command = [tile, "bench", str(path), "--device", "cuda:0", "--format", "json"]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{run.stdout}{run.stderr}")
        return json.loads(run.stdout.splitlines()[0])["ms"]["median"]


def main(tile: str, *pages: str) -> int:
    worthless = False
    for page in map(Path, pages) if pages else sorted(PAGES.glob("perf-*.md")):
        wrong, right = (milliseconds(tile, code) for code in examples(page)[:2])
        gain = wrong / right
        worthless |= gain < LEAST_GAIN
        print(f"{page.stem}: {wrong:.4f} ms, {right:.4f} ms: {gain:.2f}", flush=True)
    return int(worthless)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
