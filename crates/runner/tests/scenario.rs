//! Scenarios on the CPU, with kernels written as tile IR.

use expect_test::{Expect, expect, expect_file};
use tile_compiler::builtins::{SCENARIO_FUNCTIONS, ScenarioFunction};
use tile_compiler::hir::{self, Module};
use tile_compiler::ir::{self, Function};
use tile_compiler::source::LineIndex;
use tile_compiler::specialization::Specialization;
use tile_compiler::syntax::Parse;
use tile_runner::cpu::CpuDevice;
use tile_runner::launch::{CompiledKernel, KernelCompiler, Session, SessionOptions};
use tile_runner::report::RunResult;
use tile_runner::scenario::{
    self, KernelInfo, KernelParam, LaunchFailure, Outcome, ScenarioError, ScenarioOptions, Value,
};

/// Knows one kernel, `copy_kernel(src, out, n, BLOCK)`, which copies up to `n` elements of any
/// 32-bit type and ignores its `BLOCK` beyond the specialization.
#[derive(Default)]
struct Kernels {
    compiled: Vec<String>,
}

const COPY: &str = r#"kernel @copy_kernel level=tile num_warps=4 num_stages=3 num_ctas=1 fp_fusion=true {
  param %0 : ptr<f32> {name="src", signature="*fp32", divisibility=16}
  param %1 : ptr<f32> {name="out", signature="*fp32", divisibility=16}
  param %2 : i32 {name="n", signature="i32", divisibility=1}
  %3 = program_id {axis=0} : i32 @1
  %4 = constant {bits=0x10} : i32 @1
  %5 = mul %3, %4 : i32 @1
  %6 = arange {start=0, end=16} : tile<16xi32> @1
  %7 = splat %5 : tile<16xi32> @1
  %8 = add %7, %6 : tile<16xi32> @1
  %9 = splat %2 : tile<16xi32> @1
  %10 = cmp %8, %9 {predicate=slt} : tile<16xi1> @1
  %11 = splat %0 : tile<16xptr<f32>> @1
  %12 = ptr_add %11, %8 : tile<16xptr<f32>> @1
  %13 = load %12, mask=%10 {cache=default, evict=normal, volatile=false} : tile<16xf32> @1
  %14 = splat %1 : tile<16xptr<f32>> @1
  %15 = ptr_add %14, %8 : tile<16xptr<f32>> @1
  store %15, %13, mask=%10 {cache=default, evict=normal} @2
  return @0
}
loc @1 = 0:0..1 4:5 "copy_kernel"
loc @2 = 0:0..1 5:5 "copy_kernel"
"#;

impl KernelCompiler for Kernels {
    fn kernel(&mut self, name: &str) -> Result<KernelInfo, LaunchFailure> {
        if name != "copy_kernel" {
            return Err(LaunchFailure::Usage(format!("there is no kernel `{name}`")));
        }
        let param = |name: &str, default: Option<Value>| KernelParam {
            name: name.into(),
            constexpr: name == "BLOCK",
            annotation: None,
            specialize: true,
            specialize_alignment: true,
            default,
            computed: false,
        };
        let params = vec![
            param("src", None),
            param("out", None),
            param("n", None),
            param("BLOCK", Some(Value::Int(16))),
        ];
        Ok(KernelInfo { params, ..KernelInfo::default() })
    }

    fn tile_ir(
        &mut self,
        kernel: &str,
        specialization: &Specialization,
    ) -> Result<Function, LaunchFailure> {
        self.compiled.push(format!("{kernel} {specialization}"));
        ir::parse(COPY).map_err(|error| LaunchFailure::Compile(error.to_string()))
    }

    fn cubin(&mut self, _: &Function, arch: &str) -> Result<CompiledKernel, LaunchFailure> {
        Err(LaunchFailure::Compile(format!("no code for {arch}")))
    }
}

fn module(lines: &str) -> (String, Module) {
    let text: String = lines.lines().map(|line| format!("# tile: {}\n", line.trim())).collect();
    let module = hir::lower(&Parse::new(text.as_str()));
    (text, module)
}

fn run_with(lines: &str, sanitize: bool) -> (Result<Outcome, ScenarioError>, RunResult, Kernels) {
    let (text, module) = module(lines);
    let mut kernels = Kernels::default();
    let mut device = CpuDevice::new();
    let options = SessionOptions { sanitize, ..SessionOptions::default() };
    let mut session = Session::new(&mut kernels, &mut device, options);
    let scenario = &module.scenarios[0];
    let outcome = scenario::run(&module, scenario, &mut session, &ScenarioOptions::default());
    let empty = Outcome {
        asserts: vec![],
        variables: Default::default(),
        launches: vec![],
        store: Default::default(),
    };
    let shown = outcome.as_ref().unwrap_or(&empty);
    let mut result = RunResult::new("cpu", session.records(), shown, &LineIndex::new(&text));
    (result.ms, result.gbps) = (0.0, None);
    (outcome, result, kernels)
}

/// Values of the variables, one a line.
fn values(lines: &str) -> String {
    let lines: String =
        lines.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
    let (outcome, ..) = run_with(&lines, false);
    let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
    let show = |value: &Value| match value {
        Value::Tensor(tensor) => {
            let array = outcome.store.read(tensor);
            format!("{} {:?} {:?}", array.dtype, array.shape, array.to_floats())
        }
        Value::Array(array) => format!("{} {:?} {:?}", array.dtype, array.shape, array.to_floats()),
        other => format!("{other:?}"),
    };
    outcome.variables.iter().map(|(name, value)| format!("{name} = {}\n", show(value))).collect()
}

fn check(lines: &str, expected: Expect) {
    expected.assert_eq(&values(lines));
}

/// The error of a scenario, with the text that it points at.
fn check_error(lines: &str, expected: Expect) {
    let (text, _) = module(lines);
    let (outcome, ..) = run_with(lines, false);
    let error = outcome.expect_err("the scenario is wrong");
    expected.assert_eq(&format!("{:?}: {error}", &text[error.at.as_usize()]));
}

#[test]
fn a_kernel_is_launched_and_checked() {
    let (outcome, result, kernels) = run_with(
        "n = 40
x, out = randn(n), empty(n)
copy_kernel[(cdiv(n, 16),)](x, out, n, BLOCK=16, num_warps=8)
assert allclose(out, x)
assert allclose(out, x + 1)",
        true,
    );
    assert!(outcome.is_ok());
    expect![[r#"
        {
          "kernel": "copy_kernel",
          "device": "cpu",
          "ok": false,
          "asserts": [
            {
              "line": 4,
              "ok": true,
              "max_abs": 0.0,
              "max_rel": 0.0
            },
            {
              "line": 5,
              "ok": false,
              "max_abs": 1.0,
              "max_rel": 20.648144250851356,
              "message": "40 of 40 elements differ; the first is element 0: -0.278874933719635 where 0.721125066280365 is expected"
            }
          ],
          "findings": [],
          "outputs": {
            "out": {
              "shape": [
                40
              ],
              "dtype": "fp32",
              "min": -2.108145236968994,
              "max": 2.3663365840911865,
              "mean": -0.03540002927184105,
              "nan": 0
            }
          },
          "ms": 0.0,
          "gbps": null,
          "tflops": null
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&result).unwrap());
    assert_eq!(
        kernels.compiled,
        ["copy_kernel src=*fp32:16 out=*fp32:16 n=i32 BLOCK=16 num_warps=8 num_stages=3"]
    );
}

#[test]
fn grids_may_be_numbers_and_functions() {
    for grid in ["3", "(3,)", "lambda meta: (cdiv(n, meta['BLOCK']),)"] {
        let (outcome, result, _) = run_with(
            &format!(
                "n = 40\nx, out = arange(n), zeros(n)\ncopy_kernel[{grid}](x, out, n)\nassert all(out == x)"
            ),
            false,
        );
        assert_eq!(outcome.unwrap().launches[0].grid, [3, 1, 1]);
        assert!(result.ok, "{grid}");
    }
}

#[test]
fn an_access_outside_a_tensor_is_found() {
    let (_, result, _) =
        run_with("x, out = ones(20), zeros(16)\ncopy_kernel[2](x, out, 20)", false);
    expect![[r#"
        [
          {
            "kind": "out-of-bounds",
            "message": "store to element 16 of `out`, which has 16 elements",
            "line": 5,
            "col": 5,
            "function": "copy_kernel",
            "program": [
              1,
              0,
              0
            ],
            "index": [
              0
            ],
            "access": {
              "buffer": "out",
              "address": 2748779069504,
              "element": 16,
              "elements": 16
            },
            "count": 4
          }
        ]"#]]
    .assert_eq(&serde_json::to_string_pretty(&result.findings).unwrap());
}

#[test]
fn what_nothing_wrote_is_not_read() {
    let (_, result, _) =
        run_with("x, out = empty(16), zeros(16)\ncopy_kernel[1](x, out, 16)", true);
    let found: Vec<&str> = result.findings.iter().map(|found| found.message.as_str()).collect();
    assert_eq!(found, ["load from element 0 of `x`, which nothing has written"]);
}

#[test]
fn views_share_memory() {
    check(
        "out = zeros(4, 4)
         x = arange(4)
         copy_kernel[1](x, out[1], 4)
         rows = sum(out, axis=1)
         t = out.T[:2]",
        expect![[r#"
            out = fp32 [4, 4] [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
            rows = fp32 [4] [0.0, 6.0, 0.0, 0.0]
            t = fp32 [2, 4] [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
            x = fp32 [4] [0.0, 1.0, 2.0, 3.0]
        "#]],
    );
}

#[test]
fn elements_are_assigned_in_memory() {
    check(
        "
a = zeros(2, 3)
a[0] = 1
a[:, 2] = tensor([4, 5])
a[1, 0] += 2.5
b = a[1]; b[1] = 7
c = arange(4) * 2; d = c
c[0] = 9
e = d + 0
f = zeros(2, dtype=int32); f[1] = 2.9",
        expect![[r#"
            a = fp32 [2, 3] [1.0, 1.0, 4.0, 2.5, 7.0, 5.0]
            b = fp32 [3] [2.5, 7.0, 5.0]
            c = fp32 [4] [9.0, 2.0, 4.0, 6.0]
            d = fp32 [4] [9.0, 2.0, 4.0, 6.0]
            e = fp32 [4] [9.0, 2.0, 4.0, 6.0]
            f = i32 [2] [0.0, 2.0]
        "#]],
    );
    let wrong = "a = zeros(2, 3)\na[0] = ones(2)";
    check_error(wrong, expect![[r#""a[0]": elements of shape [2] do not fill [3]"#]]);
    check_error(
        "a = (1, 2)\na[0] = 1",
        expect![[r#""a[0]": only elements of tensors that have a name are assigned"#]],
    );
}

#[test]
fn references_are_computed_in_double_precision() {
    check(
        "x = full(3, 0.1)
         y = x + x * 1e-9
         z = (x * 3).to(fp16)
         d = y.dtype",
        expect![[r#"
            d = DType(F32)
            x = fp32 [3] [0.10000000149011612, 0.10000000149011612, 0.10000000149011612]
            y = fp32 [3] [0.10000000159011613, 0.10000000159011613, 0.10000000159011613]
            z = fp16 [3] [0.300048828125, 0.300048828125, 0.300048828125]
        "#]],
    );
}

#[test]
fn arithmetic_types_follow_pytorch() {
    check(
        "a = arange(3, dtype=int32)
         b = a + 1
         c = a * 0.5
         d = a / 2
         e = a // 2
         f = a > 1
         g = zeros(2, dtype=fp16) + zeros(2, dtype=bf16)
         h = arange(3, dtype=i8) + 127
         i = -7 // 2
         j = 2 ** 10 % 7
         k = ones(2, dtype=int8) + ones(2, dtype=uint8)
         l = a.dtype.itemsize + f.dtype.itemsize
         m = float(\"-inf\") < float(\"1e3\")",
        expect![[r#"
            a = i32 [3] [0.0, 1.0, 2.0]
            b = i32 [3] [1.0, 2.0, 3.0]
            c = fp32 [3] [0.0, 0.5, 1.0]
            d = fp32 [3] [0.0, 0.5, 1.0]
            e = i32 [3] [0.0, 0.0, 1.0]
            f = i1 [3] [0.0, 0.0, 1.0]
            g = fp32 [2] [0.0, 0.0]
            h = i8 [3] [127.0, -128.0, -127.0]
            i = Int(-4)
            j = Int(2)
            k = i16 [2] [2.0, 2.0]
            l = Int(5)
            m = Bool(true)
        "#]],
    );
}

#[test]
fn integers_add_up_in_64_bits_and_truth_values_to_truth_values() {
    check(
        "x = full(4, 100, dtype=int8)
         a = x.cumsum(0)
         b = x.cumprod(0)
         c = x.prod()
         d = (x > 0) + (x > 0)
         e = (x > 0) * (x < 0)
         f = (x > 0).cumsum(0)
         g = sort(x > 0)
         h = x + x",
        expect![[r#"
            a = i64 [4] [100.0, 200.0, 300.0, 400.0]
            b = i64 [4] [100.0, 10000.0, 1000000.0, 100000000.0]
            c = i64 [] [100000000.0]
            d = i1 [4] [1.0, 1.0, 1.0, 1.0]
            e = i1 [4] [0.0, 0.0, 0.0, 0.0]
            f = i64 [4] [1.0, 2.0, 3.0, 4.0]
            g = i1 [4] [1.0, 1.0, 1.0, 1.0]
            h = i8 [4] [-56.0, -56.0, -56.0, -56.0]
            x = i8 [4] [100.0, 100.0, 100.0, 100.0]
        "#]],
    );
}

#[test]
fn functions_along_axes() {
    check(
        "x = arange(6).view(2, 3)
         a = sum(x)
         b = sum(x, axis=0)
         c = x.max(1)
         d = mean(x, axis=1, keepdims=True)
         e = argmax(x, axis=1)
         f = cumsum(x, axis=1)
         g = softmax(x * 0, axis=0)
         h = sort(-x)
         i = x @ x.T
         j = where(x > 2, x, -1)
         k = clamp(x, 1, 4)
         l = x[:, None].shape
         m = x[..., ::2]
         n = x.stride(0)",
        expect![[r#"
            a = fp32 [] [15.0]
            b = fp32 [3] [3.0, 5.0, 7.0]
            c = fp32 [2] [2.0, 5.0]
            d = fp32 [2, 1] [1.0, 4.0]
            e = i64 [2] [2.0, 2.0]
            f = fp32 [2, 3] [0.0, 1.0, 3.0, 3.0, 7.0, 12.0]
            g = fp32 [2, 3] [0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
            h = fp32 [2, 3] [-2.0, -1.0, -0.0, -5.0, -4.0, -3.0]
            i = fp32 [2, 2] [5.0, 14.0, 14.0, 50.0]
            j = fp32 [2, 3] [-1.0, -1.0, -1.0, 3.0, 4.0, 5.0]
            k = fp32 [2, 3] [1.0, 1.0, 2.0, 3.0, 4.0, 4.0]
            l = Tuple([Int(2), Int(1), Int(3)])
            m = fp32 [2, 2] [0.0, 2.0, 3.0, 5.0]
            n = Int(3)
            x = fp32 [2, 3] [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
        "#]],
    );
}

#[test]
fn tensors_are_made_of_lists() {
    check(
        "a = tensor([[1, 2, 3], [4, 5, 6]])
         b = tensor([1, 2.5])
         c = tensor([1, 2], dtype=i8)
         d = tensor([True, False])
         e = tensor(3)
         f = tensor([True, 2])",
        expect![[r#"
            a = i64 [2, 3] [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
            b = fp32 [2] [1.0, 2.5]
            c = i8 [2] [1.0, 2.0]
            d = i1 [2] [1.0, 0.0]
            e = i64 [] [3.0]
            f = i64 [2] [1.0, 2.0]
        "#]],
    );
}

#[test]
fn an_address_stays_where_it_is() {
    let (outcome, ..) = run_with(
        "x, out = randn(64), empty(64)
before = out.data_ptr()
copy_kernel[4](x, out, 64)
assert out.data_ptr() == before and before % 16 == 0
assert out[4:].data_ptr() == before + 16
assert x.data_ptr() != before",
        false,
    );
    let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.asserts.len(), 3);
    assert!(outcome.asserts.iter().all(|assert| assert.ok));
}

#[test]
fn random_numbers_are_those_of_the_documentation() {
    check(
        "a = rand(3)
         b = randn(3, seed=1)
         c = randint(-5, 5, 8, dtype=i32, seed=2)
         d = randn(2, dtype=bf16)",
        expect![[r#"
            a = fp32 [3] [0.6524484753608704, 0.7012121081352234, 0.38712412118911743]
            b = fp32 [3] [1.325671911239624, -0.4908248782157898, 0.4268105924129486]
            c = i32 [8] [-2.0, -5.0, 3.0, 0.0, 4.0, 3.0, -5.0, -3.0]
            d = bf16 [2] [-0.279296875, -0.8828125]
        "#]],
    );
}

#[test]
fn mistakes_are_explained_where_they_are() {
    check_error(
        "x = randm(3)",
        expect![[r#""randm(3)": a scenario has no function `randm`; there is `rand`"#]],
    );
    check_error(
        "x = ones(3) + ones(4)",
        expect![[r#""ones(3) + ones(4)": shapes (3,) and (4,) do not broadcast"#]],
    );
    check_error(
        "x = tensor([[1, 2], [3]])",
        expect![[r#""tensor([[1, 2], [3]])": the lists in a tensor have one length"#]],
    );
    check_error(
        "x = (ones(3) + 1).data_ptr()",
        expect![[
            r#""(ones(3) + 1).data_ptr()": a computed tensor has no address; `.clone()` puts it in memory"#
        ]],
    );
    check_error(
        "x = n + 1",
        expect![[r#""n": `n` is not defined in this scenario or as a module constant"#]],
    );
    check_error(
        "assert ones(3) == ones(3)",
        expect![[
            r#""assert ones(3) == ones(3)": a tensor of many elements has no one truth value; use all(...), any(...) or allclose(a, b)"#
        ]],
    );
    check_error(
        "copy_kernel[1](ones(3), ones(3))",
        expect![[r#""copy_kernel[1](ones(3), ones(3))": `copy_kernel` needs an argument for `n`"#]],
    );
    check_error(
        "copy_kernel[1](ones(3), ones(3), 3, BLOK=4)",
        expect![[r#""4": the kernel has no parameter `BLOK`, nor is it a launch option"#]],
    );
    check_error(
        "copy_kernel[(1, 2, 3, 4)](ones(3), ones(3), 3)",
        expect![[r#""(1, 2, 3, 4)": a grid has one to three extents, not 4"#]],
    );
    check_error(
        "other[1](ones(3))",
        expect![[r#""other[1](ones(3))": there is no kernel `other`"#]],
    );
    check_error(
        "copy_kernel[1](ones(3), 5, 3)",
        expect![[
            r#""copy_kernel[1](ones(3), 5, 3)": argument `out` of `copy_kernel` is 5, which is no ptr<f32>"#
        ]],
    );
    check_error(
        "x = ones(3)[5]",
        expect![[r#""ones(3)[5]": index 5 is outside axis 0 of extent 3"#]],
    );
    check_error(
        "x = ones(1 << 40)",
        expect![[r#""ones(1 << 40)": a tensor of a scenario has at most 2147483648 elements"#]],
    );
    check_error(
        "x = load('missing.npy')",
        expect![[
            r#""load('missing.npy')": cannot open missing.npy: No such file or directory (os error 2)"#
        ]],
    );
    check_error(
        "import os",
        expect![[r##""# tile: import os": this line cannot be read as a statement"##]],
    );
    check_error("x = 1 // 0", expect![[r#""1 // 0": division by zero"#]]);
}

#[test]
fn files_keep_types_and_orders() {
    use tile_runner::scenario::{Array, DType, load_npy, save_npy};
    let folder = std::env::temp_dir().join(format!("tile-npy-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for dtype in
        [DType::F16, DType::F32, DType::F64, DType::I8, DType::U16, DType::I64, DType::Bool]
    {
        let array = Array::floats(dtype, vec![2, 3], vec![0.0, 1.0, 1.0, 0.0, 1.0, 1.0]);
        let array = array.convert(dtype);
        let path = folder.join(dtype.name());
        save_npy(&path, &array).unwrap();
        assert_eq!(load_npy(&path).unwrap(), array, "{dtype}");
    }
    let path = folder.join("broken");
    let error = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        load_npy(&path).unwrap_err()
    };
    let file = |shape: &str| {
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
        [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes()].concat()
    };
    for start in ["", "1, 2, 3", "\u{93}NUMPY"] {
        assert!(error(start.as_bytes()).ends_with("is not an .npy file"));
    }
    assert!(error(&file("(256,)")[..40]).ends_with("is not an .npy file"));
    assert!(error(&file("(256,")).ends_with("its shape is none"));
    assert!(error(&file("(-4,)")).ends_with("its shape is none"));
    assert!(error(&file("(256,)")).contains("is cut short: 256 elements take 1024 bytes"));
    for extents in ["(99999999999,)", "(9999999999, 9999999999, 9999999999)"] {
        assert!(error(&file(extents)).contains("at most 2147483648 elements"), "{extents}");
    }
    assert!(load_npy(&folder).unwrap_err().contains("cannot open"));
    assert!(load_npy(&folder.join("none")).unwrap_err().contains("cannot open"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn arguments_are_chosen_to_fit_the_kernel() {
    use tile_compiler::specialization::{ArgSpec, Origin};
    let mut kernels = Kernels::default();
    let info = kernels.kernel("copy_kernel").unwrap();
    let runtime =
        |signature: &str| ArgSpec::Runtime { signature: signature.into(), divisible_by_16: false };
    let constant = ArgSpec::Constexpr(tile_compiler::specialization::ConstArg::Int(16));
    let args = ["*fp32", "*fp32", "i32"].map(runtime).into_iter().chain([constant]);
    let names = info.params.iter().map(|param| param.name.clone());
    let specialization = Specialization::new(Origin::Guess, names.zip(args).collect());
    let func = kernels.tile_ir("copy_kernel", &specialization).unwrap();
    let nothing = Default::default();
    let chosen = tile_runner::auto::choose(&specialization, &func, &nothing, None).unwrap();
    expect![[r#"
        AutoLaunch {
            args: [
                (
                    "src",
                    "rand(16, dtype=fp32, seed=0)",
                ),
                (
                    "out",
                    "rand(16, dtype=fp32, seed=1)",
                ),
                (
                    "n",
                    "1000",
                ),
                (
                    "BLOCK",
                    "16",
                ),
            ],
            grid: "(1,)",
        }
    "#]]
    .assert_debug_eq(&chosen);
}

#[test]
fn arguments_on_the_command_line_are_expressions() {
    let module = hir::lower(&Parse::new("SIZE = 4 * 2\n"));
    let options = ScenarioOptions::default();
    let evaluate = |arguments: &[(&str, &str)]| {
        let arguments: Vec<(String, String)> =
            arguments.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
        scenario::evaluate_arguments(&module, &arguments, &options)
    };
    let found = evaluate(&[("n", "SIZE + 1"), ("x", "ones(n, dtype=fp16) * 2")]).unwrap();
    assert!(matches!(found.values[0].1, Value::Int(9)));
    let Value::Tensor(x) = &found.values[1].1 else { panic!("{:?}", found.values) };
    assert_eq!((x.dtype.name(), x.layout.numel()), ("fp16", 9));
    assert_eq!(found.store.read(x).to_floats(), [2.0; 9]);
    let error = |text| evaluate(&[("n", text)]).unwrap_err().to_string();
    assert_eq!(error("1 +"), "--arg n: `1 +` is not an expression");
    assert_eq!(error("ones(2) @ 3"), "--arg n: `@` takes tensors");
}

#[test]
fn the_documentation_lists_every_function_and_each_exists() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenarios.md");
    let text = std::fs::read_to_string(page).unwrap();
    let head = "| function | meaning |\n|---|---|\n";
    let (before, _) = text.split_once(head).unwrap();
    let row = |f: &ScenarioFunction| format!("| `{}({})` | {} |\n", f.name, f.signature, f.doc);
    let rows: String = SCENARIO_FUNCTIONS.iter().map(row).collect();
    expect_file![page].assert_eq(&format!("{before}{head}{rows}"));
    for function in SCENARIO_FUNCTIONS {
        let (outcome, ..) = run_with(&format!("x = {}()", function.name), false);
        let message = outcome.map_or_else(|error| error.to_string(), |_| String::new());
        assert!(!message.contains("has no function"), "{}: {message}", function.name);
    }
}

#[test]
fn lines_hold_several_statements_and_grids_have_names() {
    let (outcome, result, _) = run_with(
        "n = 40; x = randn(n); out = empty(n)
grid = lambda meta: (cdiv(n, meta[\"BLOCK\"]),)
for i in range(2): x = x + i; copy_kernel[grid](x, out, n)
assert allclose(out, x); assert out.shape == (40,)",
        true,
    );
    assert_eq!(outcome.unwrap().launches.len(), 2);
    assert_eq!(result.asserts.iter().map(|found| found.ok).collect::<Vec<_>>(), [true, true]);
}

#[test]
fn tensors_that_only_a_launch_names_are_outputs_too() {
    let (outcome, result, _) = run_with("copy_kernel[(1,)](ones(16), empty(16), 16)", true);
    assert_eq!(result.outputs["out"].mean, Some(1.0));
    let outcome = outcome.unwrap();
    let names: Vec<&str> = outcome.tensors().map(|(name, _)| name).collect();
    assert_eq!(names, ["src", "out"]);
}
