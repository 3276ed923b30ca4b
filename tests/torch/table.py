"""Makes the table of PyTorch's members from an unpacked wheel, whose code is not run:

    pip download torch --no-deps && unzip torch-*.whl -d FOLDER
    python tests/torch/table.py FOLDER > crates/compiler/src/builtins/torch.txt

A line is a word that says what it lists, and names. `module PATH` lists members of a module,
`tensor` those of tensors; `module-gives-tensors torch` and `tensor-gives-tensors` those of them that are called and give
one tensor. `class PATH` lists members of instances. `call NAME` lists the keywords of the function `torch.NAME`, `method NAME` of a tensor's.
"""

import ast
import re
import sys
from pathlib import Path

# Modules whose members host code of kernels names.
MODULES = ["autograd", "autograd.function", "cuda", "library", "nn", "nn.functional", "optim", "testing"]
# What releases before had, and what back ends outside of PyTorch add.
OTHERS = """btrifact chain_matmul cholesky_solve eig gels gesv ger ifft irfft lstsq lu_unpack matrix_rank
mlu musa npu hpu ipu xla gcu sdaa maca rfft rpc solve stft symeig typename vacc""".split()
# What its bindings register that no stub lists: types of few bits, and what they tell of other devices.
REGISTERED = [f"{kind}{bits}" for kind in ("int", "uint") for bits in range(1, 8)] + """AVG SUM ArgumentSpec Capsule Code
CompleteArgumentSpec DeepCopyMemoTable ExcludeDispatchKeyGuard ExecutionPlan FatalError Gradient OperatorInfo PyObjectType
ScriptClass ScriptClassFunction ScriptDictIterator ScriptDictKeyIterator ScriptListIterator ScriptObjectProperty StaticModule
bit get_autocast_ipu_dtype get_autocast_xla_dtype is_autocast_ipu_enabled is_autocast_xla_enabled set_autocast_ipu_dtype
set_autocast_ipu_enabled set_autocast_xla_dtype set_autocast_xla_enabled""".split()


# Methods of tensors that the stubs leave out.
UNLISTED = {"cdouble", "cfloat", "const_data_ptr", "is_xla", "name", "volatile"}


def top(tree):
    """Names that a module binds, whatever block they stand in."""
    names = set()
    open_ = list(tree.body)
    while open_:
        node = open_.pop()
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                names |= {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
            if any(isinstance(t, ast.Name) and t.id == "__all__" for t in ast.walk(node)):
                names |= {c.value for c in ast.walk(node) if isinstance(c, ast.Constant) and isinstance(c.value, str)}
        else:
            open_ += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
            for block in ("body", "orelse", "handlers", "finalbody"):
                for child in getattr(node, block, []):
                    open_ += child.body if isinstance(child, ast.ExceptHandler) else []
    return names


def parse(path):
    return ast.parse(path.read_text())


def members(root, path):
    base = root.joinpath("torch", *path.split(".")) if path else root / "torch"
    files = [base / "__init__.py"] if base.is_dir() else []
    files += [file for file in (base.with_suffix(".py"), base.with_suffix(".pyi")) if file.exists() and base != root / "torch"]
    names = set()
    for file in files:
        names |= top(parse(file))
    if base.is_dir():
        names |= {p.stem for p in base.iterdir() if p.suffix == ".py" or p.is_dir()}
    if path == "nn":
        names |= members(root, "nn.modules") | members(root, "nn.parameter")
    return names


def of_class(tree, *names):
    """Members of classes, those that their methods set included."""
    found = set()
    for owner in tree.body:
        if isinstance(owner, ast.ClassDef) and owner.name in names:
            found |= top(owner)
            for node in ast.walk(owner):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
                    found.add(node.attr)
    return found


def keywords(function):
    if function.args.kwarg:
        return None
    return {arg.arg for arg in function.args.args + function.args.kwonlyargs} - {"self"}


def gives_tensor(function):
    return function.returns is not None and ast.unparse(function.returns) in ("Tensor", "Self", "torch.Tensor")


def functions(nodes):
    """By name: keywords of all overloads, and whether each gives a tensor."""
    known = {}
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            words, tensor = known.get(node.name, (set(), True))
            more = keywords(node)
            words = None if words is None or more is None else words | more
            known[node.name] = (words, tensor and gives_tensor(node))
    return known


def public(names):
    return sorted(name for name in names if re.fullmatch(r"[A-Za-z]\w*", name))


def with_private(names):
    return sorted(name for name in names if re.fullmatch(r"(?!__)\w+", name))


def line(*words):
    print(" ".join(words))


def main():
    root = Path(sys.argv[1])
    variable = functions(parse(root / "torch/_C/_VariableFunctions.pyi").body)
    core = parse(root / "torch/_C/__init__.pyi")
    tensor = parse(root / "torch/_tensor.py")
    classes = [n for tree in (core, tensor) for n in tree.body if isinstance(n, ast.ClassDef) and n.name in ("TensorBase", "Tensor")]
    methods = functions(node for owner in classes for node in owner.body)
    attributes = set(methods) | UNLISTED
    for owner in classes:
        attributes |= top(owner)

    names = members(root, "") | set(variable) | top(core) | members(root, "functional") | {*OTHERS, *REGISTERED}
    print("# Members of PyTorch, made by tests/torch/table.py. Do not edit.")
    line("module", "torch", *public(names))
    for path in MODULES:
        line("module", f"torch.{path}", *public(members(root, path)))
    line("tensor", *public(attributes))
    context = parse(root / "torch/autograd/function.py")
    saved = "saved_tensors saved_variables needs_input_grad materialize_grads".split()
    line("class", "torch.autograd.Function", *with_private(of_class(context, "FunctionCtx", "BackwardCFunction") | set(saved)))
    line("class", "torch.nn.Module", *with_private(of_class(parse(root / "torch/nn/modules/module.py"), "Module")))
    line("module-gives-tensors", "torch", *public(name for name, (_, gives) in variable.items() if gives))
    line("tensor-gives-tensors", *public(name for name, (_, gives) in methods.items() if gives))
    for kind, known in (("call", variable), ("method", methods)):
        for name in public(known):
            if known[name][0]:
                line(kind, name, *public(known[name][0]))


main()
