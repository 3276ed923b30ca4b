"""Jit functions of packages, without what the packages import; shared by programs that run kernels that
nobody here wrote under Triton."""

import ast
import functools
import importlib
import importlib.abc
import importlib.machinery
import json
import linecache
import os
import re
import signal
import subprocess
import sys
import types
import warnings
from pathlib import Path


class Refused(Exception):
    """The kernel cannot be compared, for the reason given."""


class Anything(type):
    """Stands for whatever a missing module has: a class, a decorator, a number."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return anything()

    def __call__(cls, *args, **kwargs):
        return anything()

    def __getitem__(cls, _):
        return anything()

    def __iter__(cls):
        return iter(())

    def __bool__(cls):
        return False

    def __or__(cls, _):
        return anything()

    __ror__ = __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __or__

    def __lt__(cls, _):
        return False

    __gt__ = __le__ = __ge__ = __lt__


def anything():
    return Anything("Missing", (), {})


class Missing(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module that is not there. `members` are what is known of them, by module and name."""

    def __init__(self, members):
        self.members = members

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = lambda name: self.attribute(spec.name, name)
        return module

    def attribute(self, module, name):
        if name.startswith("__") and name != "__version__":
            raise AttributeError(name)
        if name == "__version__":
            return "2.9.0"
        return self.members.get((module, name)) or anything()

    def exec_module(self, module):
        pass


class Stripped(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules below a folder, and runs of each what jit functions need: imports, jit
    functions and assignments. Of a package it runs what binds a name when that is asked for, so that
    nothing else is imported with it. `prepare` is called with each module after that."""

    def __init__(self, root, prepare):
        self.root, self.prepare = root, prepare

    def find_spec(self, name, path=None, target=None):
        place = self.root.joinpath(*name.split("."))
        if place.with_suffix(".py").is_file():
            return importlib.machinery.ModuleSpec(name, self, origin=str(place.with_suffix(".py")))
        if place.is_dir():
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def exec_module(self, module):
        origin = module.__spec__.origin
        if origin is None:
            module.__getattr__ = functools.partial(self.member, module)
            return
        for node in self.read(module, Path(origin)):
            self.run(node, module)
        self.prepare(module)

    def member(self, package, name):
        """What the first file of a package binds to a name."""
        origin = self.root.joinpath(*package.__name__.split("."), "__init__.py")
        if not name.startswith("__") and origin.is_file():
            for node in self.read(package, origin):
                if name in bound(node) or "*" in bound(node):
                    self.run(node, package)
                if name in vars(package):
                    self.prepare(package)
                    return vars(package)[name]
        raise AttributeError(name)

    def read(self, module, origin):
        """The statements of a file that are kept."""
        text = origin.read_text(encoding="utf-8-sig")
        module.__file__ = str(origin)
        # Triton reads the source of a function again, by its file and line.
        linecache.cache[str(origin)] = (len(text), None, text.splitlines(True), str(origin))
        return list(statements(ast.parse(text).body))

    def run(self, node, module):
        try:
            exec(compile(ast.Module([node], []), module.__file__, "exec"), vars(module))
        except (Exception, SystemExit):  # A program's arguments may be read among the assignments.
            pass


def bound(node):
    """The names that a statement binds."""
    match node:
        case ast.Import() | ast.ImportFrom():
            return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        case ast.FunctionDef():
            return {node.name}
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}


#: What a decorator is told for profilers: host functions, which are not kept.
OF_LAUNCHES = ("launch_metadata", "repr")


def statements(body):
    """Those of a module that are kept; of functions, the decorators that make them jit."""
    for node in body:
        if isinstance(node, (ast.If, ast.Try)):
            handlers = [part for handler in getattr(node, "handlers", []) for part in handler.body]
            yield from statements([*handlers, *node.orelse, *node.body])
        elif isinstance(node, (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)):
            yield node
        elif isinstance(node, ast.FunctionDef):
            node.decorator_list = [it for it in node.decorator_list if "jit" in ast.unparse(it)
                                   or "constexpr_function" in ast.unparse(it)]
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call):
                    decorator.keywords = [it for it in decorator.keywords if it.arg not in OF_LAUNCHES]
            if node.decorator_list:
                yield node


def jit_function(root, file, name, members, prepare):
    """The function `name` of `file`, a module below `root`, without what tunes and wraps it."""
    sys.meta_path[:0] = [Stripped(root, prepare)]
    sys.meta_path.append(Missing(members))
    module = importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))
    function = getattr(module, name)
    if isinstance(function, Anything):
        raise Refused("its decorators are not there")
    while hasattr(function.fn, "fn"):
        function = function.fn
    return function


def chosen(tile, file, name):
    """What `--arg auto` chooses: the grid and arguments by name, as expressions. The kernel runs with them
    on the CPU, where every lane is checked, and does no harm."""
    command = [tile, "run", f"{file}::{name}", "--device", "cpu", "--arg", "auto", "--sanitize", "--triton", "3.6"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    found = re.search(r"note: --arg auto chose \w+\[(.*?)\]\((.*)\)$", done.stderr + done.stdout, re.M)
    if done.returncode != 0 or not found:
        said = [line.strip() for line in (done.stderr + done.stdout).splitlines()]
        reasons = [line for line in said if "error" in line or line.startswith("line ")]
        raise Refused(f"tile: {(reasons or said)[0][:100]}")
    call = ast.parse(f"f({found[2]})", mode="eval").body
    return ast.literal_eval(found[1]), {kw.arg: kw.value for kw in call.keywords}


def language_type(dtype):
    """The type of the language that is spelled so."""
    import triton.language as tl

    kinds = {"fp": "float", "bf": "bfloat", "i": "int", "u": "uint"}
    kind, bits = re.fullmatch(r"(\D+)(\d.*)", dtype).groups()
    return getattr(tl, kinds[kind] + bits)


def in_a_child(answer, seconds):
    """What `answer` says, in a child, since what it runs may crash or never end."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        warnings.simplefilter("ignore")
        signal.alarm(seconds)
        try:
            os.write(write, json.dumps(answer()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return json.loads(said) if said else ("skipped", f"no answer within {seconds} s")
