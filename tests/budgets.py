"""Measures the budgets of docs/performance.md on the machine at hand.

    python3 tests/budgets.py --tile target/release/tile --bench target/release/lsp_bench \
        --small FILE --large FILE --corpus FOLDER [--examples examples] [--other "ty server"]...

`--small` and `--large` are files that `lsp_bench latency` works on, alone in a folder each; `--corpus` holds kernel
files, which are copied until there are enough of them. Prints a line per figure: what it is, the figure, the budget.
The assembler is the one that Tile finds. Artifacts are kept nowhere, so every compile is a compile.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

# Examples whose kernels multiply matrices, and what the others may take, in milliseconds.
PRODUCTS = ["matmul.py", "attention.py"]
ELEMENTWISE = ["vector_add.py", "softmax.py", "rms_norm.py", "gelu.tile"]
EDITS_OF_A_KERNEL = 12
OPEN_FILES = 50
CHECKED_FILES = 500
LOADED_FILES = 1000
IDLE_SECONDS = 30


class Server:
    """A language server and the client's side of its session."""

    def __init__(self, command, folder, environment):
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        self.news = threading.Condition()
        self.messages = []
        self.next_id = 1
        threading.Thread(target=self._listen, daemon=True).start()
        uri = Path(folder).as_uri()
        capabilities = {"experimental": {"tile": {"kernelStatus": True, "showsResults": True}}}
        parameters = {
            "processId": os.getpid(),
            "rootUri": uri,
            "workspaceFolders": [{"uri": uri, "name": "budgets"}],
            "capabilities": capabilities,
        }
        self.request("initialize", parameters)
        self.notify("initialized", {})

    def _listen(self):
        output = self.child.stdout
        while True:
            length = 0
            while (line := output.readline()) not in (b"", b"\r\n"):
                name, value = line.split(b":", 1)
                length = int(value) if name.lower() == b"content-length" else length
            if length == 0:
                return
            message = json.loads(output.read(length))
            if "method" in message and "id" in message:
                self._send({"id": message["id"], "result": None})
                continue
            with self.news:
                self.messages.append(message)
                self.news.notify_all()

    def _send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.child.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.child.stdin.flush()

    def notify(self, method, parameters):
        self._send({"method": method, "params": parameters})

    def request(self, method, parameters):
        self.next_id += 1
        own = self.next_id
        self._send({"id": own, "method": method, "params": parameters})
        return self.wait(lambda message: message.get("id") == own)

    def wait(self, wanted, patience=120):
        """The first message that is wanted; it and all before it are forgotten."""
        limit = time.monotonic() + patience
        with self.news:
            while True:
                for at, message in enumerate(self.messages):
                    if wanted(message):
                        del self.messages[: at + 1]
                        return message
                if not self.news.wait(limit - time.monotonic()):
                    raise TimeoutError

    def open(self, path):
        uri = path.as_uri()
        document = {"uri": uri, "languageId": "python", "version": 1, "text": path.read_text()}
        self.notify("textDocument/didOpen", {"textDocument": document})
        return uri

    def insert(self, uri, version, line, text):
        at = {"line": line, "character": 0}
        change = {"range": {"start": at, "end": at}, "text": text}
        document = {"uri": uri, "version": version}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})

    def resident(self):
        """MiB of memory: all, and the part that is not files of the program."""
        status = Path(f"/proc/{self.child.pid}/status").read_text()
        figure = lambda name: int(status.split(name)[1].split()[0]) / 1024
        return figure("VmRSS:"), figure("RssAnon:")

    def family(self):
        """The server and its workers, as process ids."""
        parents = {}
        for status in Path("/proc").glob("[0-9]*/stat"):
            try:
                # The name in parentheses may hold spaces.
                parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
        found = [self.child.pid]
        for process in found:
            found.extend(child for child, parent in parents.items() if parent == process)
        return found

    def processor_seconds(self):
        """What the server and its workers have used of processors."""
        used = 0
        for process in self.family():
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            used += int(fields[11]) + int(fields[12])
        return used / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.request("shutdown", None)
        self.notify("exit", None)
        self.child.wait()


def tell(what, figure, budget=""):
    print(f"{what:58} {figure:40} {budget}", flush=True)


def quantiles(times):
    times = sorted(times)
    at = lambda q: times[min(len(times) - 1, round(q * (len(times) - 1)))]
    return f"{statistics.median(times):.0f} ms p50  {at(0.95):.0f} ms p95  {times[-1]:.0f} ms max"


def run(command, environment=None):
    found = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    return found.stdout + found.stderr


def latency(bench, file, servers, edits):
    for server in servers:
        print(f"--- {' '.join(server[1:] and [Path(server[0]).name, *server[1:]])}", flush=True)
        print(run([bench, "latency", "--edits", str(edits), str(file), "--", *server]), flush=True)


def compiles(tile, examples, environment):
    """From an edit that changes a kernel's code to its PTX, assembled and measured."""
    for names, budget in ((ELEMENTWISE, 100), (PRODUCTS, 400)):
        for name in names:
            server = Server([tile, "lsp"], examples, environment)
            path = examples / name
            uri = server.open(path)
            lines = path.read_text().splitlines()
            assigns = lambda line: "program_id(" in line and "=" in line and line.count("(") == line.count(")")
            place = next(at for at, line in enumerate(lines) if assigns(line))
            indent = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
            ready = lambda message: (
                message.get("method") == "tile/kernelStatus"
                and message["params"]["state"] != "compiling"
            )
            first = server.wait(ready)
            time.sleep(2)
            times = []
            for version in range(2, 2 + EDITS_OF_A_KERNEL):
                server.messages.clear()
                start = time.monotonic()
                server.insert(uri, version, place + 1, f"{indent}budget_{version} = tl.program_id(0) * {version}\n")
                status = server.wait(ready)["params"]
                times.append((time.monotonic() - start) * 1e3)
                time.sleep(0.3)
            measured = "with resources" if status.get("resources") else f"{status['state']}, no resources"
            tell(f"edit to PTX, {name}, {measured}", quantiles(times), f"p95 {budget} ms")
            server.stop()
            assert first


def kernel_files(corpus):
    """Files with kernels, the largest first."""
    files = [path for path in sorted(corpus.rglob("*.py")) if "triton.jit" in path.read_text(errors="ignore")]
    return sorted(files, key=lambda path: -path.stat().st_size)


def copies(files, count, folder):
    """`count` files in a folder, in packages of as many as there are."""
    for number in range(count):
        source = files[number % len(files)]
        home = folder / f"part_{number // len(files)}"
        home.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, home / f"{number % len(files)}_{source.name}")


def memory(tile, corpus, environment):
    files = kernel_files(corpus)
    for what, chosen in (("largest", files[:OPEN_FILES]), ("middle", files[len(files) // 2 :][:OPEN_FILES])):
        server = Server([tile, "lsp"], corpus, environment)
        for path in chosen:
            uri = server.open(path)
            server.wait(lambda message: message.get("params", {}).get("uri") == uri)
        time.sleep(15)
        lines = sum(len(path.read_text().splitlines()) for path in chosen)
        resident, data = server.resident()
        what = f"memory, the {len(chosen)} {what} files open, {lines} lines"
        tell(what, f"{resident:.0f} MiB, {data:.0f} MiB of it data", "150 MiB")
        server.stop()


def idle(tile, large, environment):
    """What a server with one large file takes while nobody does anything."""
    server = Server([tile, "lsp"], large.parent, environment)
    uri = server.open(large)
    server.wait(lambda message: message.get("params", {}).get("uri") == uri)
    time.sleep(15)
    before = server.processor_seconds()
    time.sleep(IDLE_SECONDS)
    used = server.processor_seconds() - before
    resident, data = server.resident()
    workers = len(server.family()) - 1
    memory = f"{resident:.0f} MiB, {data:.0f} MiB of it data"
    tell(f"idle, {workers} workers: processor time in {IDLE_SECONDS} s; memory", f"{used * 1e3:.0f} ms; {memory}")
    server.stop()


def check(tile, corpus, environment):
    """`tile check` over many files on two processors, and again when all read as they did."""
    with tempfile.TemporaryDirectory() as scratch:
        copies(kernel_files(corpus), CHECKED_FILES, Path(scratch))
        command = ["taskset", "-c", "0,1", tile, "check", scratch]
        run(command, environment)
        for what, options in (("tile check --no-cache", ["--no-cache"]), ("tile check again", [])):
            times = []
            for _ in range(3):
                start = time.monotonic()
                found = run(command + options, environment)
                times.append((time.monotonic() - start) * 1e3)
            tell(f"{what}: {found.splitlines()[-1] if found else 'nothing'}", quantiles(times), "1500 ms")


def load(tile, bench, large, corpus, environment):
    with tempfile.TemporaryDirectory() as scratch:
        copies(kernel_files(corpus), LOADED_FILES, Path(scratch))
        file = shutil.copy(large, Path(scratch) / Path(large).name)
        print(run([bench, "load", scratch, file, "--", tile, "lsp"], environment), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("tile", "bench", "small", "large", "corpus"):
        parser.add_argument(f"--{name}", required=True, type=lambda text: Path(text).resolve())
    parser.add_argument("--examples", default="examples", type=lambda text: Path(text).resolve())
    parser.add_argument("--other", action="append", default=[], help="another server's command")
    parser.add_argument("--edits", type=int, default=50)
    parser.add_argument("--only", help="comma-separated: latency, compiles, memory, idle, check, load")
    given = parser.parse_args()
    wanted = given.only.split(",") if given.only else ["latency", "compiles", "memory", "idle", "check", "load"]
    tile, bench = str(given.tile), str(given.bench)
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, "XDG_CACHE_HOME": scratch}
        if "latency" in wanted:
            servers = [[tile, "lsp"], *(other.split() for other in given.other)]
            for file in (given.small, given.large):
                alone = Path(scratch) / file.stem
                alone.mkdir()
                latency(bench, shutil.copy(file, alone), servers, given.edits)
        if "compiles" in wanted:
            compiles(tile, given.examples, environment)
        if "memory" in wanted:
            memory(tile, given.corpus, environment)
        if "idle" in wanted:
            idle(tile, given.large, environment)
        if "check" in wanted:
            check(tile, given.corpus, environment)
        if "load" in wanted:
            load(tile, bench, given.large, given.corpus, environment)


if __name__ == "__main__":
    sys.exit(main())
