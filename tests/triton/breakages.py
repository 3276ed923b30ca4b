"""Mistakes to put into a program that uses Triton: one edit in one place each."""

import ast
import itertools
import random
import re
import shutil
from pathlib import Path

FAMILIES = ("mask", "bounds", "race", "shape", "constexpr", "launch", "name")
#: The operators of each family: functions from a module to (start, end, new text).
OPERATORS = {family: [] for family in FAMILIES}
MEMORY = ("load", "store", "atomic_add", "atomic_max", "atomic_min")
REDUCTIONS = ("sum", "max", "min", "argmax", "argmin", "cumsum", "cumprod", "sort", "reduce", "associative_scan")
MAKERS = ("empty", "zeros", "ones", "full", "new_empty", "new_zeros")
MODULES = ("tl", "triton", "triton.language", "torch", "tl.math")
LIKE_MAKERS = ("empty_like", "zeros_like", "ones_like", "full_like")


def operator(family):
    """Makes a function an operator of `family`."""
    def add(function):
        OPERATORS[family].append(function)
        return function
    return add


class Module:
    """A source file, its kernels, and the functions that launch kernels."""

    def __init__(self, text):
        self.text = text
        self.lines = text.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.tree = ast.parse(text)
        self.dump = ast.dump(self.tree)
        functions = [node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef)]
        self.kernels = [function for function in functions if is_kernel(function)]
        inside = {node for kernel in self.kernels for node in ast.walk(kernel)}
        self.host = [node for node in ast.walk(self.tree) if node not in inside]
        self.launches = [node for node in self.host if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)]
        self.launchers = [function for function in functions if function not in self.kernels
                          and any(launch in set(ast.walk(function)) for launch in self.launches)]

    def at(self, line, column):
        """The place of a column, which Python counts in bytes."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def start(self, node):
        return self.at(node.lineno, node.col_offset)

    def end(self, node):
        return self.at(node.end_lineno, node.end_col_offset)

    def of(self, node):
        return self.text[self.start(node):self.end(node)]

    def replaced(self, node, text):
        return self.start(node), self.end(node), text

    def exchanged(self, first, second):
        """The edit that puts each of two nodes, in order, in place of the other."""
        between = self.text[self.end(first):self.start(second)]
        return self.start(first), self.end(second), self.of(second) + between + self.of(first)

    def without(self, call, parts):
        """The edit that takes neighbouring arguments, and the comma before or after, out of a call."""
        arguments = in_order(self, call)
        first, last = arguments.index(parts[0]), arguments.index(parts[-1])
        if first:
            return self.end(arguments[first - 1]), self.end(parts[-1]), ""
        after = arguments[last + 1:]
        return self.start(parts[0]), self.start(after[0]) if after else self.end(parts[-1]), ""


def is_kernel(function):
    return any(re.search(r"\bjit\b", ast.unparse(decorator)) for decorator in function.decorator_list)


def in_order(module, call):
    return sorted([*call.args, *call.keywords], key=module.start)


def called(node):
    """The last part of the name of what a call calls."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def keyword(call, name):
    return next((keyword for keyword in call.keywords if keyword.arg == name), None)


def parameters(kernel):
    return [*kernel.args.posonlyargs, *kernel.args.args, *kernel.args.kwonlyargs]


def is_constexpr(parameter):
    return parameter.annotation is not None and "constexpr" in ast.unparse(parameter.annotation)


def constants(kernel):
    return [parameter.arg for parameter in parameters(kernel) if is_constexpr(parameter)]


def runtime_numbers(kernel):
    """The parameters that look like sizes: neither compile-time values nor pointers."""
    return [parameter.arg for parameter in parameters(kernel) if not is_constexpr(parameter)
            and not re.search(r"ptr|_p$|stride", parameter.arg, re.I) and compared(kernel, parameter.arg)]


def compared(kernel, name):
    """Whether something is compared with a variable."""
    return any(name in names_of(node) for node in ast.walk(kernel) if isinstance(node, ast.Compare))


def names_of(node):
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def loads(node):
    return [part for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)]


def calls(module, names):
    """The calls in kernels of functions of these names, with the kernel."""
    for kernel in module.kernels:
        for node in ast.walk(kernel):
            if called(node) in names:
                yield kernel, node


def is_mask(node):
    operands = (ast.Compare, ast.BinOp, ast.BoolOp)
    return isinstance(node, operands) and any(isinstance(part, ast.Compare) for part in ast.walk(node))


def masks(kernel):
    """The variables that loads and stores have as masks."""
    assigned = {target.id for node in ast.walk(kernel) if isinstance(node, ast.Assign) and is_mask(node.value)
                for target in node.targets if isinstance(target, ast.Name)}
    arguments = [mask_of(node) for node in ast.walk(kernel) if called(node) in MEMORY]
    return sorted(assigned & set().union(*(names_of(mask) for mask in arguments if mask is not None)))


def programs(kernel):
    """The variables that hold numbers of programs."""
    return {target.id for node in ast.walk(kernel) if isinstance(node, ast.Assign) and called(node.value) == "program_id"
            for target in node.targets if isinstance(target, ast.Name)}


def mask_of(call):
    """The argument that is the mask of a load or a store, or None."""
    named = keyword(call, "mask")
    place = 1 if called(call) == "load" else 2
    return named.value if named else call.args[place] if len(call.args) > place else None


@operator("mask")
def drop_mask(module):
    for _, call in calls(module, MEMORY):
        named = [part for part in in_order(module, call) if getattr(part, "arg", None) in ("mask", "other")]
        if named and named[0].arg in ("mask", "other") and keyword(call, "mask"):
            arguments = in_order(module, call)
            if arguments.index(named[-1]) - arguments.index(named[0]) == len(named) - 1:
                yield module.without(call, named)
        elif mask_of(call):
            yield module.without(call, call.args[1 if called(call) == "load" else 2:])


@operator("mask")
def drop_other(module):
    for _, call in calls(module, ("load",)):
        if keyword(call, "other") and mask_of(call):
            yield module.without(call, [keyword(call, "other")])


@operator("mask")
def another_mask(module):
    for kernel, call in calls(module, MEMORY):
        mask = mask_of(call)
        for other in masks(kernel) if mask else ():
            if other not in names_of(mask):
                yield module.replaced(mask, other)


@operator("mask")
def half_of_a_mask(module):
    for kernel in module.kernels:
        for node in ast.walk(kernel):
            is_both = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd)
            if is_both and (is_mask(node) or names_of(node) & set(masks(kernel))):
                yield module.replaced(node, f"({module.of(node.left)})")
                yield module.replaced(node, f"({module.of(node.right)})")


@operator("mask")
def another_size(module):
    for kernel in module.kernels:
        sizes = runtime_numbers(kernel) + [name for name in constants(kernel) if compared(kernel, name)]
        for node in ast.walk(kernel):
            if isinstance(node, ast.Compare) and isinstance(node.comparators[0], ast.Name):
                for size in sizes:
                    if size not in names_of(node):
                        yield module.replaced(node.comparators[0], size)


@operator("mask")
def one_too_far(module):
    for kernel in module.kernels:
        for node in ast.walk(kernel):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt):
                left, right = module.end(node.left), module.start(node.comparators[0])
                yield left, right, module.text[left:right].replace("<", "<=")


def sizes_of(call):
    """The expressions of the sizes of a tensor that a call makes."""
    if called(call) in LIKE_MAKERS or not call.args:
        return []
    first = call.args[0]
    if isinstance(first, (ast.Tuple, ast.List)):
        return first.elts
    return call.args if called(call) not in ("full",) and not isinstance(first, ast.Starred) else []


def buffers(module):
    """The calls that make tensors in functions that launch kernels."""
    inside = {node for function in module.launchers for node in ast.walk(function)}
    return [node for node in module.host if node in inside and called(node) in MAKERS + LIKE_MAKERS]


@operator("bounds")
def smaller_buffer(module):
    for call in buffers(module):
        for size in sizes_of(call):
            yield module.replaced(size, f"{module.of(size)} - 1")
            yield module.replaced(size, f"({module.of(size)}) // 2")
        if called(call) in LIKE_MAKERS and call.args:
            yield module.replaced(call.args[0], f"{module.of(call.args[0])}[:-1]")


def grids(module):
    """The tuples that are grids."""
    for node in module.host:
        if isinstance(node, ast.Lambda) and isinstance(node.body, ast.Tuple):
            yield node.body
        is_grid = isinstance(node, ast.Assign) and "grid" in ast.unparse(node.targets[0]).lower()
        if is_grid and isinstance(node.value, ast.Tuple):
            yield node.value
    for launch in module.launches:
        if isinstance(launch.func.slice, ast.Tuple) and isinstance(launch.func.value, (ast.Name, ast.Attribute)):
            yield launch.func.slice


@operator("bounds")
def larger_grid(module):
    for grid in grids(module):
        for extent in grid.elts:
            if not isinstance(extent, ast.Constant) or extent.value != 1:
                yield module.replaced(extent, f"{module.of(extent)} + 1")


@operator("bounds")
def strides_exchanged(module):
    for launch in module.launches:
        arguments = in_order(module, launch)
        for first, second in zip(arguments, arguments[1:]):
            if all("stride" in ast.unparse(part) for part in (first, second)) and type(first) is type(second):
                yield module.exchanged(*(part.value if isinstance(part, ast.keyword) else part
                                         for part in (first, second)))
    for kernel in module.kernels:
        strides = [parameter.arg for parameter in parameters(kernel) if "stride" in parameter.arg]
        for name in loads(kernel):
            for other in strides if name.id in strides else ():
                if other != name.id:
                    yield module.replaced(name, other)


@operator("bounds")
def offset_plus_one(module):
    for _, call in calls(module, MEMORY):
        if call.args and isinstance(call.args[0], ast.BinOp):
            yield module.replaced(call.args[0], f"{module.of(call.args[0])} + 1")


@operator("bounds")
def blocks_twice_apart(module):
    for kernel in module.kernels:
        for node in products(kernel):
            if names_of(node) & programs(kernel):
                yield module.replaced(node, f"{module.of(node)} * 2")


def products(kernel):
    return [node for node in ast.walk(kernel) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)]


@operator("bounds")
def another_block(module):
    for kernel in module.kernels:
        for node in products(kernel):
            for name in (node.left, node.right):
                if isinstance(name, ast.Name) and name.id in constants(kernel):
                    for other in constants(kernel):
                        if other != name.id and "BLOCK" in other:
                            yield module.replaced(name, other)


@operator("race")
def another_axis_of_programs(module):
    for _, call in calls(module, ("program_id", "num_programs")):
        argument = call.args[0] if call.args else keyword(call, "axis") and keyword(call, "axis").value
        if isinstance(argument, ast.Constant) and argument.value in (0, 1, 2):
            for axis in {0, 1, 2} - {argument.value}:
                yield module.replaced(argument, str(axis))


@operator("race")
def without_program(module):
    for kernel in module.kernels:
        for node in ast.walk(kernel):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
                for one, other in ((node.left, node.right), (node.right, node.left)):
                    is_term = isinstance(one, ast.Name) or isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult)
                    if is_term and names_of(one) & programs(kernel):
                        yield module.replaced(node, module.of(other))
        for node in products(kernel):
            if isinstance(node.left, ast.Name) and node.left.id in programs(kernel):
                yield module.replaced(node.left, "0")


@operator("race")
def store_for_atomic(module):
    for kernel, call in calls(module, ("atomic_add", "atomic_max", "atomic_min")):
        is_alone = any(isinstance(node, ast.Expr) and node.value is call for node in ast.walk(kernel))
        if is_alone and isinstance(call.func, ast.Attribute) and not keyword(call, "sem"):
            end = module.end(call.func)
            yield end - len(call.func.attr), end, "store"


@operator("race")
def without_stride(module):
    for _, call in calls(module, ("store", "atomic_add")):
        for node in products(call.args[0]) if call.args else ():
            yield module.replaced(node, module.of(node.left))
    for kernel in module.kernels:
        for node in products(kernel):
            if "stride" in ast.unparse(node.right) and isinstance(node.left, ast.Name):
                yield module.replaced(node, node.left.id)


def is_expansion(node):
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and any(
        isinstance(part, ast.Constant) and part.value is None for part in node.slice.elts)


@operator("shape")
def another_expansion(module):
    for kernel in module.kernels:
        for node in filter(is_expansion, ast.walk(kernel)):
            yield module.replaced(node, module.of(node.value))
            if len(node.slice.elts) == 2:
                left, right = map(module.of, node.slice.elts)
                if left != right:
                    yield module.replaced(node, f"{module.of(node.value)}[{right}, {left}]")


@operator("shape")
def another_axis(module):
    for _, call in calls(module, REDUCTIONS):
        argument = keyword(call, "axis").value if keyword(call, "axis") else call.args[1] if len(call.args) > 1 else None
        if isinstance(argument, ast.Constant) and argument.value in (0, 1):
            yield module.replaced(argument, str(1 - argument.value))


@operator("shape")
def another_transposition(module):
    for kernel in module.kernels:
        for node in ast.walk(kernel):
            if called(node) == "trans" and len(node.args) == 1:
                yield module.replaced(node, module.of(node.args[0]))
            elif isinstance(node, ast.Attribute) and node.attr == "T":
                yield module.replaced(node, module.of(node.value))
            elif called(node) == "dot":
                for operand in node.args[:2]:
                    yield module.replaced(operand, f"tl.trans({module.of(operand)})")


@operator("shape")
def operands_exchanged(module):
    for _, call in calls(module, ("dot",)):
        if len(call.args) >= 2:
            yield module.exchanged(*call.args[:2])


@operator("shape")
def another_range(module):
    for kernel, call in calls(module, ("arange",)):
        end = call.args[1] if len(call.args) > 1 else None
        if end is not None:
            yield module.replaced(end, f"{module.of(end)} // 2")
            yield module.replaced(end, f"{module.of(end)} * 2")
            for other in constants(kernel):
                if "BLOCK" in other and other not in names_of(end):
                    yield module.replaced(end, other)


@operator("shape")
def sizes_exchanged(module):
    for kernel in module.kernels:
        for node in ast.walk(kernel):
            if called(node) in ("reshape", "view", "zeros", "full", "broadcast_to", "permute"):
                for shape in node.args:
                    if isinstance(shape, (ast.Tuple, ast.List)):
                        for first, second in zip(shape.elts, shape.elts[1:]):
                            if module.of(first) != module.of(second):
                                yield module.exchanged(first, second)


@operator("constexpr")
def drop_constexpr(module):
    for kernel in module.kernels:
        for parameter in filter(is_constexpr, parameters(kernel)):
            start = module.start(parameter)
            yield start, module.end(parameter), parameter.arg


@operator("constexpr")
def no_power_of_two(module):
    for _, call in calls(module, ("arange",)):
        if len(call.args) > 1:
            yield module.replaced(call.args[1], f"{module.of(call.args[1])} + 1")
            yield module.replaced(call.args[1], f"{module.of(call.args[1])} * 3")


@operator("constexpr")
def runtime_value(module):
    for kernel, call in calls(module, ("arange", "static_range", "zeros", "full", "cdiv")):
        for name in loads(call):
            for number in runtime_numbers(kernel) if name.id in constants(kernel) else ():
                yield module.replaced(name, number)


@operator("constexpr")
def unrolled(module):
    for kernel in module.kernels:
        for node in ast.walk(kernel):
            if isinstance(node, ast.For) and called(node.iter) == "range":
                runtime = {parameter.arg for parameter in parameters(kernel) if not is_constexpr(parameter)}
                if names_of(node.iter) & (runtime | programs(kernel)):
                    yield module.replaced(node.iter.func, "tl.static_range")


@operator("constexpr")
def another_type(module):
    for kernel in module.kernels:
        for node in ast.walk(kernel):
            if isinstance(node, ast.Attribute) and node.attr in ("float32", "float16", "int32", "int64", "bfloat16"):
                others = {"float32": ("int32", "float16"), "int32": ("float32", "int64"), "int64": ("int32", "float32")}
                for other in others.get(node.attr, ("int32", "float64")):
                    yield module.end(node) - len(node.attr), module.end(node), other


def misspelled(name):
    """`name` with two letters exchanged, or one more."""
    for index in range(len(name) - 1, 0, -1):
        if name[index] != name[index - 1] and name[index].isalnum() and name[index - 1].isalnum():
            return name[:index - 1] + name[index] + name[index - 1] + name[index + 1:]
    return name + "s"


@operator("launch")
def misspelled_keyword(module):
    for launch in module.launches:
        for named in launch.keywords:
            if named.arg:
                start = module.start(named)
                yield start, start + len(named.arg), misspelled(named.arg)


@operator("launch")
def argument_dropped(module):
    for launch in module.launches:
        for argument in in_order(module, launch):
            yield module.without(launch, [argument])


@operator("launch")
def argument_twice(module):
    for launch in module.launches:
        for argument in launch.args:
            if not isinstance(argument, ast.Starred):
                yield module.replaced(argument, f"{module.of(argument)}, {module.of(argument)}")


@operator("launch")
def neighbours_exchanged(module):
    for launch in module.launches:
        for first, second in zip(launch.args, launch.args[1:]):
            if module.of(first) != module.of(second):
                yield module.exchanged(first, second)


@operator("launch")
def dimension_dropped(module):
    for grid in grids(module):
        for index, extent in enumerate(grid.elts):
            others = [module.of(other) for other in grid.elts if other is not extent]
            if others and module.text[module.start(grid)] == "(":
                yield module.replaced(grid, f"({', '.join(others)},)")


@operator("launch")
def no_number_of_warps(module):
    for launch in module.launches:
        warps = keyword(launch, "num_warps")
        if warps:
            yield module.replaced(warps.value, "3")
        elif launch.args or launch.keywords:
            last = in_order(module, launch)[-1]
            yield module.end(last), module.end(last), ", num_warps=3"


@operator("launch")
def another_type_of_buffer(module):
    for call in buffers(module):
        kind = keyword(call, "dtype")
        for other in ("torch.int32", "torch.float16", "torch.float64"):
            if kind and module.of(kind.value) != other:
                yield module.replaced(kind.value, other)
            elif not kind and call.args:
                last = in_order(module, call)[-1]
                yield module.end(last), module.end(last), f", dtype={other}"


@operator("name")
def misspelled_function(module):
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in MODULES:
            yield module.end(node) - len(node.attr), module.end(node), misspelled(node.attr)


@operator("name")
def misspelled_variable(module):
    functions = [node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef)]
    for function in functions:
        for name in loads(ast.Module(function.body, [])):
            if len(name.id) > 3:
                yield module.replaced(name, misspelled(name.id))


@operator("name")
def misspelled_argument(module):
    for kernel in module.kernels:
        for node in ast.walk(kernel):
            if isinstance(node, ast.Call):
                for named in node.keywords:
                    if named.arg:
                        start = module.start(named)
                        yield start, start + len(named.arg), misspelled(named.arg)


def is_right(module, change):
    """Whether Python reads the changed module as another one, with all other lines where they are."""
    changed = module.text[:change["start"]] + change["new"] + module.text[change["end"]:]
    try:
        return changed.count("\n") == module.text.count("\n") and ast.dump(ast.parse(changed)) != module.dump
    except SyntaxError:
        return False


def in_turn(queues):
    """One of each queue after the other, until all are empty."""
    for row in itertools.zip_longest(*queues):
        yield from (item for item in row if item is not None)


def possible(modules, function, family, order):
    """The changes that an operator makes to the files of a program, in some order."""
    found = []
    for file, module in modules.items():
        text = module.text
        for start, end, new in function(module):
            old = text[start:end]
            new += "\n" * (old.count("\n") - new.count("\n"))
            found.append({"family": family, "operator": function.__name__, "file": file,
                          "line": text.count("\n", 0, start) + 1, "start": start, "end": end, "old": old, "new": new})
    order.shuffle(found)
    return found


def breakages(folder, most):
    """At most so many changes of the program of `folder`, spread over families, operators and places."""
    modules = {file.relative_to(folder).as_posix(): Module(file.read_text(encoding="utf-8"))
               for file in sorted(folder.rglob("*.py"))}
    order = random.Random(folder.name)
    families = []
    for family, functions in OPERATORS.items():
        queues = [possible(modules, function, family, order) for function in functions]
        order.shuffle(queues)
        families.append(in_turn(queues))
    chosen, seen = [], set()
    for change in in_turn(families):
        place = change["file"], change["start"], change["end"], change["new"]
        if place not in seen and is_right(modules[change["file"]], change):
            seen.add(place)
            chosen.append({"id": f"{folder.name}-{len(chosen):02}", **change})
        if len(chosen) == most:
            break
    return chosen


def statement_lines(tree, line):
    """The lines that run if the innermost statement at `line` does: for the head of a function, those of its body."""
    found = range(line, line + 1)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno:
            body = getattr(node, "body", None)
            if not body:
                found = range(node.lineno, node.end_lineno + 1)
            elif line < body[0].lineno:
                is_function = isinstance(node, ast.FunctionDef)
                found = range(body[0].lineno, node.end_lineno + 1) if is_function else range(node.lineno, body[0].lineno)
    return found


def with_change(folder, change, target):
    """Copies the program of `folder` to `target`, with one change unless it is None."""
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns("__pycache__"))
    if change:
        file = Path(target) / change["file"]
        text = file.read_text(encoding="utf-8")
        if text[change["start"]:change["end"]] != change["old"]:
            raise ValueError(f"{change['id']}: the program is another one")
        file.write_text(text[:change["start"]] + change["new"] + text[change["end"]:], encoding="utf-8")
