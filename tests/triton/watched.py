"""Whole programs under Triton's real rules without a GPU: every launch goes through Triton's front end for what it passes,
as in programs.py, then through Triton's interpreter with every lane watched.

Each storage that a launch passes has a range of addresses of its own, far from all others, so that the address of a lane
says which tensor its pointer came from. Lanes that leave the storage are recorded and computed no further, as are lanes
that two programs of a launch use in a way that depends on their order. Needs Triton 3.6, PyTorch and NumPy before 2.4.
"""

import collections
import inspect
import operator
import os
import random
import runpy
import signal
import sys
import traceback
import types
from pathlib import Path

import numpy as np
import torch
import torch._dynamo
import triton
import triton.language as tl
import triton.runtime.interpreter as interpreter
from triton import knobs
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor

import programs

#: Each storage of a launch begins near a multiple of this, the first at the `FIRST`: beyond all real addresses.
ROOM, FIRST = 1 << 44, 1 << 12
#: No program of a launch, and more than one.
NOBODY, MANY = -1, -2
#: The most programs that a dimension of a grid may have.
MOST_PROGRAMS = (2**31 - 1, 65535, 65535)
#: In how many calls of a function lines are noted.
TRACED_CALLS = 40
#: What a library of the GPU computes, where NumPy calls it otherwise.
NUMPY_NAMES = {"pow": "power", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh",
               "llrint": "rint"}


class Ended(BaseException):
    """The time of a program is over."""


class Refused(Exception):
    """What the launcher says of arguments that the front end takes."""


class Storage:
    """The bytes of a tensor while a launch runs, and which program used which of them last."""

    def __init__(self, tensor, index):
        self.held = tensor.untyped_storage()
        self.real = self.held.data_ptr()
        self.size = self.held.nbytes()
        self.start = (FIRST + index) * ROOM + self.real % 4096
        self.bytes = np.empty(0, np.uint8)
        if self.size:
            self.bytes = torch.empty(0, dtype=torch.uint8).set_(self.held).numpy()
        self.writer = np.full(self.size, NOBODY, np.int32)
        self.reader = np.full(self.size, NOBODY, np.int32)
        self.written = np.zeros(self.size, bool)


class Launch:
    """What one launch of a kernel does to memory."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.storages = {}
        self.tensors = {}
        self.program = 0

    def pointer(self, tensor, name):
        """The address that stands for the first element of `tensor`."""
        key = tensor.untyped_storage().data_ptr()
        storage = self.storages.get(key)
        if storage is None:
            storage = self.storages[key] = Storage(tensor, len(self.storages))
        self.tensors[name if name != "?" else f"#{len(self.tensors)}"] = storage, tensor
        # A tensor without elements has no address: whatever is used from there is outside.
        return storage.start + (tensor.data_ptr() or storage.real + storage.size) - storage.real

    def parts(self, addresses, width):
        """For each storage that lanes point to: it, which lanes these are, at which bytes, and which of them fit. Lanes
        with real addresses, which come from memory, are left out."""
        by_room = {storage.start // ROOM: storage for storage in self.storages.values()}
        rooms = (addresses + np.uint64(ROOM // 2)) // np.uint64(ROOM)
        for room in np.unique(rooms):
            storage = by_room.get(int(room))
            lanes = np.flatnonzero(rooms == room)
            if storage is not None:
                offsets = addresses[lanes].astype(np.int64) - storage.start
                yield storage, lanes, offsets, (offsets >= 0) & (offsets + width <= storage.size)
            elif room >= FIRST // 2:
                yield None, lanes, lanes, np.zeros(len(lanes), bool)


class Record:
    """All that a program did."""

    def __init__(self):
        self.launches = []
        self.bounds = []
        self.races = []
        self.overlaps = set()
        self.lines = set()
        self.calls = collections.Counter()
        self.phase = "host"
        self.undefined = "zero"

    def fault(self, kind, launch, what, storage):
        """Notes a fault once for each place."""
        name = next((name for name, (held, _) in launch.tensors.items() if held is storage), "?")
        note = {"kernel": launch.kernel, "what": what, "tensor": name, "line": place()}
        if note not in kind and len(kind) < 50:
            kind.append(note)


RECORD = Record()
LAUNCH = None
FOLDER = Path()


def place():
    """The file and line of the program that runs."""
    frame = sys._getframe()
    while frame and not frame.f_code.co_filename.startswith(str(FOLDER)):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}" if frame else "?"


def touched(offsets, width):
    """The index of every byte of the lanes."""
    return (offsets[:, None] + np.arange(width)).reshape(-1)


def note_read(launch, storage, offsets, width):
    at = touched(offsets, width)
    others = storage.writer[at]
    if np.any((others != NOBODY) & (others != launch.program)):
        RECORD.fault(RECORD.races, launch, "reads what another program stores", storage)
    readers = storage.reader[at]
    storage.reader[at] = np.where((readers == NOBODY) | (readers == launch.program), launch.program, MANY)


def note_store(launch, storage, offsets, values):
    """Notes a store of `values`, one row of bytes for each lane."""
    order = np.argsort(offsets, kind="stable")
    is_same_place = np.diff(offsets[order]) == 0
    if is_same_place.any() and np.any(np.diff(values[order].astype(int), axis=0)[is_same_place]):
        RECORD.fault(RECORD.races, launch, "lanes of one store differ", storage)
    at, values = touched(offsets, values.shape[1]), values.reshape(-1)
    differs = storage.bytes[at] != values
    for users, what in ((storage.writer, "two programs store"), (storage.reader, "stores what another program reads")):
        foreign = (users[at] != NOBODY) & (users[at] != launch.program)
        if np.any(foreign & differs):
            RECORD.fault(RECORD.races, launch, what, storage)
        elif np.any(foreign):
            RECORD.overlaps.add(launch.kernel)
    storage.writer[at] = launch.program
    storage.written[at] = True


def like(value, shape):
    """The array of a value, a mask say, that has or gets this shape."""
    array = np.asarray(value.data if isinstance(value, interpreter.TensorHandle) else value)
    return array.reshape(shape) if array.size == np.prod(shape, dtype=int) else np.broadcast_to(array, shape)


def lanes_inside(pointers, mask, width, what):
    """The real addresses of the lanes, the mask without those outside, and the parts that are inside."""
    shape = pointers.data.shape
    flat = pointers.data.reshape(-1).astype(np.uint64)
    kept = like(mask, shape).reshape(-1).astype(bool)
    real, inside = flat.copy(), []
    active = np.flatnonzero(kept)
    for storage, lanes, offsets, fits in LAUNCH.parts(flat[active], width):
        if not fits.all():
            RECORD.fault(RECORD.bounds, LAUNCH, what, storage)
        kept[active[lanes[~fits]]] = False
        if storage is None:
            continue
        real[active[lanes]] = (offsets + storage.real).astype(np.uint64)
        inside.append((storage, active[lanes[fits]], offsets[fits]))
    return real.reshape(shape), kept.reshape(shape), inside


def undefined(shape, dtype):
    """What lanes that are masked off hold where nothing says what."""
    if RECORD.undefined == "zero":
        return np.zeros(shape, dtype)
    if np.issubdtype(dtype, np.floating):
        return np.full(shape, np.nan, dtype)
    return np.full(shape, np.iinfo(dtype).max if dtype != bool else True, dtype)


class Watched(interpreter.InterpreterBuilder):
    """Triton's interpreter, which says what lanes do."""

    def create_masked_load(self, ptrs, mask, other, cache_modifier, eviction_policy, is_volatile):
        element = ptrs.get_element_ty()
        dtype = interpreter._get_np_dtype(element)
        real, kept, inside = lanes_inside(ptrs, mask, dtype.itemsize, "load")
        for storage, _, offsets in inside:
            note_read(LAUNCH, storage, offsets, dtype.itemsize)
        other = undefined(ptrs.data.shape, dtype) if other is None else like(other, ptrs.data.shape)
        other = other.astype(dtype)
        return interpreter.TensorHandle(interpreter._interpreter.load(real, kept, other, dtype), element)

    def create_masked_store(self, ptrs, value, mask, cache_modifier, eviction_policy):
        values = like(value, ptrs.data.shape).copy()
        width = values.dtype.itemsize
        real, kept, inside = lanes_inside(ptrs, mask, width, "store")
        as_bytes = values.reshape(-1).view(np.uint8).reshape(-1, width)
        for storage, lanes, offsets in inside:
            note_store(LAUNCH, storage, offsets, as_bytes[lanes])
        interpreter._interpreter.store(real, values, kept)

    def create_load(self, ptr, _0, _1, is_volatile):
        return self.create_masked_load(ptr, np.ones_like(ptr.data, bool), None, _0, _1, is_volatile)

    def create_store(self, ptr, val, _0, _1):
        return self.create_masked_store(ptr, val, np.ones_like(ptr.data, bool), _0, _1)

    def create_splat(self, ret_ty, arg):
        # What compares floating-point numbers has their type there, though its data is of truth values.
        return interpreter.TensorHandle(np.full(ret_ty.shape, arg.data.reshape(-1)[0], arg.data.dtype), arg.dtype.scalar)

    def create_atomic_cas(self, ptr, cmp, val, sem, scope):
        ptr, kept = self.atomic_lanes(ptr, True, val)
        if not kept.all():
            raise IndexError("an atomic outside of its tensor")
        return super().create_atomic_cas(ptr, cmp, val, sem, scope)

    def create_atomic_rmw(self, rmwOp, ptr, val, mask, sem, scope):
        ptr, kept = self.atomic_lanes(ptr, mask, val)
        return super().create_atomic_rmw(rmwOp, ptr, val, interpreter.TensorHandle(kept, tl.int1), sem, scope)

    def atomic_lanes(self, pointers, mask, value):
        width = value.data.dtype.itemsize
        real, kept, inside = lanes_inside(pointers, mask, width, "atomic")
        for storage, _, offsets in inside:
            storage.written[touched(offsets, width)] = True
        return interpreter.TensorHandle(real, pointers.dtype), kept

    def create_extern_elementwise(self, library, path, symbol, arguments, result, is_pure):
        name = symbol.removeprefix("__nv_")
        name = name if name == "erf" else name.removesuffix("f")
        if name == "rsqrt":
            found = 1 / np.sqrt(arguments[0].data)
        elif name == "erf":
            found = interpreter.np_erf_fp32(arguments[0].data)
        else:
            found = getattr(np, NUMPY_NAMES.get(name, name))(*(argument.data for argument in arguments))
        return interpreter.TensorHandle(np.asarray(found).astype(interpreter._get_np_dtype(result)), result.scalar)


BUILDER = Watched()


def of_library(value):
    """A function of a library of the GPU that a program imports by its name, so that it is what is patched there."""
    libraries = (libdevice.__name__, cuda_libdevice.__name__)
    if not inspect.isfunction(value) or value.__module__ not in libraries:
        return value
    name = value.__name__
    return lambda *args, **named: getattr(cuda_libdevice, name)(*args, **named)


def compiled_and_exec(self, transformed):
    """In place of `FunctionRewriter._compile_and_exec`, which puts names of its own into the program's modules."""
    scope = {**self.fn.__globals__, **inspect.getclosurevars(self.fn).nonlocals,
             "interpreter_semantic": interpreter.TritonSemantic(BUILDER)}
    scope = {name: of_library(value) for name, value in scope.items()}
    exec(compile(transformed, filename=self.filename, mode="exec"), scope)
    return scope[self.fn.__name__]


REWRITTEN = {}


def rewritten(function):
    """What the interpreter runs for `function`."""
    if function.fn not in REWRITTEN:
        REWRITTEN[function.fn] = interpreter.FunctionRewriter(function.fn).rewrite_ast()
    return REWRITTEN[function.fn]


def called(self, *args, **named):
    """In place of `JITFunction.__call__`: a function that a kernel calls."""
    if LAUNCH is None:
        raise RuntimeError("Cannot call @triton.jit'd outside of the scope of a kernel")
    return rewritten(self)(*args, **named)


def patched_language():
    """Makes Triton's functions those of the interpreter, until what is returned is restored."""
    scope = interpreter._LangPatchScope()
    for module in (tl, tl.core):
        for part in (module, module.tensor, tl.math):
            interpreter._patch_builtin(part, BUILDER, scope)
        interpreter._patch_lang_tensor(module.tensor, scope)
        interpreter._patch_lang_core(module, scope)
    interpreter._patch_builtin(tl.core.tensor_descriptor_base, BUILDER, scope)
    interpreter._patch_builtin(cuda_libdevice, BUILDER, scope)
    for name, member in inspect.getmembers(cuda_libdevice, callable):
        scope.set_attr(libdevice, name, member)
    return scope


convert = interpreter._implicit_cvt


def converted(arg, name="?"):
    """In place of the interpreter's `_implicit_cvt`: tensors have addresses of the launch, numbers the types of Triton."""
    if isinstance(arg, TensorDescriptor):
        return convert(arg)
    if isinstance(arg, (bool, float)):
        kind = tl.int1 if isinstance(arg, bool) else tl.float32
        return tl.tensor(interpreter.TensorHandle(np.array([arg], interpreter._get_np_dtype(kind)), kind), kind)
    value = convert(arg)
    if hasattr(arg, "data_ptr"):
        tensor = interpreter._unwrap_tensor(arg)
        value.handle.data = np.array([LAUNCH.pointer(tensor, name)], np.uint64)
    return value


def is_constant(parameter, named):
    """Whether a parameter is known when the kernel is compiled: Triton takes a number that is 1 for a constant, too."""
    value = named.get(parameter.name)
    is_one = type(value) is int and value == 1 and not parameter.do_not_specialize
    return parameter.is_constexpr or is_one


class Compiled(programs.Anything):
    """A compiled kernel, which the interpreter runs."""

    def __init__(self, function):
        self.jitted = function

    def run(self, x, y, z, stream, function, packed, metadata, enter, leave, *arguments):
        global LAUNCH
        grid = checked_grid((x, y, z))
        launch = LAUNCH = Launch(self.jitted.fn.__name__)
        RECORD.phase = "interpreter"
        knobs.runtime.interpret = True
        scope = patched_language()
        interpreter.interpreter_builder = BUILDER
        try:
            named = dict(zip(self.jitted.arg_names, arguments))
            constant = {parameter.name for parameter in self.jitted.params if is_constant(parameter, named)}
            values = {name: arg if name in constant else converted(arg, name) for name, arg in named.items()}
            run_programs(launch, rewritten(self.jitted), values, grid)
        finally:
            scope.restore()
            knobs.runtime.interpret = False
            LAUNCH = None
        RECORD.phase = "launch"
        remember(launch)

    def __getitem__(self, grid):
        def launch(*arguments):
            self.run(*(tuple(grid) + (1, 1))[:3], 0, None, None, None, None, None, *arguments)
        return launch


def checked_grid(grid):
    """The grid as the launcher takes it."""
    numbers = tuple(operator.index(extent) for extent in grid)
    if any(extent > most for extent, most in zip(numbers, MOST_PROGRAMS)) or any(extent < 0 for extent in numbers):
        raise Refused(f"a grid of {numbers}")
    return numbers


def run_programs(launch, function, values, grid):
    BUILDER.set_grid_dim(*grid)
    for launch.program, (x, y, z) in enumerate(np.ndindex(*grid)):
        BUILDER.set_grid_idx(x, y, z)
        with np.errstate(all="ignore"):
            function(**values)


def remember(launch):
    """Keeps what the launch wrote: per tensor the elements and what they hold."""
    wrote = {}
    for name, (storage, tensor) in launch.tensors.items():
        if storage.written.any():
            wrote[name] = (storage.size, np.packbits(storage.written), plain(tensor))
    RECORD.launches.append((launch.kernel, wrote))


def plain(tensor):
    """The elements of a tensor as an array."""
    tensor = interpreter._unwrap_tensor(tensor).detach()
    if not tensor.is_complex() and tensor.is_floating_point():
        tensor = tensor.to(torch.float64)
    return tensor.clone().numpy()


compile_kernel = programs.front_end


def front_end(self, key, signature, device, *rest):
    """In place of `JITFunction._do_compile`: what is compiled runs in the interpreter."""
    compile_kernel(self, key, signature, device, *rest)
    kernel = self.device_caches[device][0][key] = Compiled(self)
    return kernel


launch_kernel = JITFunction.run


def launched(self, *args, **named):
    """In place of `JITFunction.run`: what it raises says whether the kernel ran."""
    RECORD.phase = "launch"
    try:
        return launch_kernel(self, *args, **named)
    except Exception as raised:
        raised.phase = RECORD.phase
        raise
    finally:
        RECORD.phase = "host"


class OnCpu(programs.OnCpu):
    """Tensors that are made without values hold none that a program can use."""

    MAKERS = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")

    def __torch_function__(self, function, kinds, args=(), named=None):
        made = super().__torch_function__(function, kinds, args, named)
        if getattr(function, "__name__", "") in self.MAKERS and made.numel() and made.device.type == "cpu":
            with torch.no_grad():
                flat = torch.empty(0, dtype=torch.uint8).set_(made.untyped_storage())
                flat.fill_(0xFF if made.is_floating_point() else made.dtype == torch.bool or 0x7F)
        return made


def in_backward(self, *gradients, apply=torch.autograd.function.BackwardCFunction.apply):
    """In place of `BackwardCFunction.apply`: PyTorch leaves the modes of a program out of its backward passes."""
    with OnCpu():
        return apply(self, *gradients)


def pretend():
    """Puts all of that in place of a GPU."""
    programs.pretend()
    torch.autograd.function.BackwardCFunction.apply = in_backward
    JITFunction._do_compile = front_end
    JITFunction.run = launched
    JITFunction.__call__ = called
    interpreter._implicit_cvt = converted
    # Timings that Triton keeps on disk would make a program launch less the next time.
    Autotuner.check_disk_cache = lambda self, key, configs, measure: bool(measure())
    torch.compile = lambda function=None, **named: function or (lambda compiled: compiled)
    # Programs begin as copies of this process: what takes long to import, as PyTorch's compiler does, is imported once.
    torch.testing.assert_close(torch.zeros(1), torch.zeros(1))
    interpreter.FunctionRewriter._compile_and_exec = compiled_and_exec


def trace_calls(frame, event, argument):
    """Notes the lines of the program that run, in the first calls of each function."""
    if not frame.f_code.co_filename.startswith(f"{FOLDER}{os.sep}") or RECORD.calls[frame.f_code] == TRACED_CALLS:
        return None
    RECORD.calls[frame.f_code] += 1
    return trace_lines


def trace_lines(frame, event, argument):
    RECORD.lines.add((frame.f_code.co_filename, frame.f_lineno))
    return trace_lines


def end_program(*_):
    raise Ended


def tensors_of(names):
    """The tensors among global variables, by name."""
    found = {}
    for name, value in names.items():
        several = value if isinstance(value, (list, tuple)) else [value]
        for index, one in enumerate(several):
            if isinstance(one, torch.Tensor) and not name.startswith("__"):
                found[f"{name}[{index}]"] = plain(one)
    return found


def how_it_ended(folder, seconds):
    """Runs main.py: whether it ended, was refused or raised, what was said, and the tensors that it leaves."""
    signal.signal(signal.SIGALRM, end_program)
    signal.alarm(seconds)
    main = folder / "main.py"
    sys.argv = [str(main)]
    sys.path.insert(0, str(folder))
    try:
        with OnCpu():
            left = runpy.run_path(str(main), run_name="__main__")
        return "ok", "", tensors_of(left)
    except Ended:
        return "time", f"more than {seconds} s", {}
    except SystemExit as raised:
        return ("raises", f"exit {raised.code}", {}) if raised.code else ("ok", "", {})
    except BaseException as raised:
        return kind_of(raised), f"{phase_of(raised)}: {said(raised)}", {}
    finally:
        signal.alarm(0)


def phase_of(raised):
    """Whether `raised` is of the host's code, of a launch or of the interpreter."""
    frames = traceback.extract_tb(raised.__traceback__)
    in_triton = not isinstance(raised, ImportError) and any(frame.filename.startswith(programs.TRITON) for frame in frames)
    return getattr(raised, "phase", "launch" if in_triton else "host")


def kind_of(raised):
    """Whether Triton refused, a comparison of the program failed, or it raised otherwise."""
    if phase_of(raised) == "launch":
        return "compile"
    failed = isinstance(raised, AssertionError) and phase_of(raised) == "host" and RECORD.launches
    return "values" if failed else "raises"


def said(raised):
    lines = f"{type(raised).__name__}: {raised}".strip().splitlines()
    return " | ".join(line.strip() for line in (lines[:1] + lines[-1:] if len(lines) > 1 else lines))[:300]


def watched_run(folder, undefined, seconds, is_traced=False):
    """All that the program of `folder` did, where lanes without a value hold `zero` or `garbage`; if traced, its lines."""
    global RECORD, FOLDER
    RECORD, FOLDER = Record(), folder
    RECORD.undefined = undefined
    torch.set_num_threads(1)
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    if is_traced:
        sys.settrace(trace_calls)
    end, words, left = how_it_ended(folder, seconds)
    sys.settrace(None)
    lines = {(Path(file).relative_to(FOLDER).as_posix(), line) for file, line in RECORD.lines}
    return types.SimpleNamespace(end=end, said=words, left=left, launches=RECORD.launches, bounds=RECORD.bounds,
                                 races=RECORD.races, overlaps=sorted(RECORD.overlaps), lines=lines)
