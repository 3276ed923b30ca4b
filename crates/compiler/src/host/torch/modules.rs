//! Modules of PyTorch itself: what their constructors set that host code passes to kernels.

use crate::builtins::TORCH;
use crate::hir::{BinaryOp, Name};
use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::code::operators::{binary, position};
use crate::host::library::external_call;
use crate::host::objects::instances::TRAINING;
use crate::host::torch::tensor;
use crate::host::value::Value;
use crate::host::value::contents::Contents;
use crate::project::Resolution;

/// What a constructor sets an attribute to.
enum Sets {
    /// A value.
    Value(Value),
    /// A parameter of this shape.
    Parameter(Vec<Value>),
}

/// Classes of `torch.nn` that have parameters, whose constructors [`Host::construct`] knows.
const WITH_PARAMETERS: &[&str] = &[
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Embedding",
    "GroupNorm",
    "LayerNorm",
    "Linear",
    "PReLU",
    "RMSNorm",
];

/// The classes of sequences of modules, whose attributes are called by their places, and the attribute
/// that says how many there are.
const SEQUENTIAL: &str = "Sequential";
const LIST: &str = "ModuleList";
const COUNT: &str = "number of modules";

/// The class of modules by names, and the attribute that lists these.
const DICT: &str = "ModuleDict";
const NAMES: &str = "names of modules";

/// Methods that change which modules there are in a sequence of them.
pub(crate) const CHANGE_SEQUENCE: &[&str] =
    &["add_module", "append", "clear", "extend", "insert", "pop", "register_module"];

/// The function that changes what it knows of earlier batches.
const BATCH_NORM: &str = "torch.nn.functional.batch_norm";

/// What gives its argument.
const IDENTITY: &str = "identity";

/// The function of PyTorch that a module of a known class calls, with the attributes that it gives it by
/// name.
fn function_of(class: &str) -> Option<(&'static str, &'static [&'static str])> {
    const SPREADING: &[&str] =
        &["weight", "stride", "padding", "dilation", "groups", "output_padding"];
    const AVERAGING: &[&str] = &["kernel_size", "stride", "padding", "ceil_mode"];
    const POOLING: &[&str] =
        &["kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices"];
    const LOSS: &[&str] = &["reduction", "reduce", "size_average"];
    const CONVOLUTION: &[&str] = &["weight", "stride", "padding", "dilation"];
    Some(match class {
        "Conv1d" => ("torch.nn.functional.conv1d", CONVOLUTION),
        "Conv2d" => ("torch.nn.functional.conv2d", CONVOLUTION),
        "Conv3d" => ("torch.nn.functional.conv3d", CONVOLUTION),
        "BatchNorm1d" | "BatchNorm2d" | "GroupNorm" | "LayerNorm" | "RMSNorm" => {
            ("torch.nn.functional.layer_norm", &[])
        }
        "ConvTranspose1d" => ("torch.nn.functional.conv_transpose1d", SPREADING),
        "ConvTranspose2d" => ("torch.nn.functional.conv_transpose2d", SPREADING),
        "ConvTranspose3d" => ("torch.nn.functional.conv_transpose3d", SPREADING),
        "AvgPool1d" => ("torch.nn.functional.avg_pool1d", AVERAGING),
        "AvgPool2d" => ("torch.nn.functional.avg_pool2d", AVERAGING),
        "AvgPool3d" => ("torch.nn.functional.avg_pool3d", AVERAGING),
        "MaxPool1d" => ("torch.nn.functional.max_pool1d", POOLING),
        "MaxPool2d" => ("torch.nn.functional.max_pool2d", POOLING),
        "MaxPool3d" => ("torch.nn.functional.max_pool3d", POOLING),
        "AdaptiveAvgPool1d" => ("torch.nn.functional.adaptive_avg_pool1d", &["output_size"]),
        "AdaptiveAvgPool2d" => ("torch.nn.functional.adaptive_avg_pool2d", &["output_size"]),
        "PixelShuffle" => ("torch.nn.functional.pixel_shuffle", &["upscale_factor"]),
        "Unfold" => {
            ("torch.nn.functional.unfold", &["kernel_size", "dilation", "padding", "stride"])
        }
        "Upsample" => ("torch.nn.functional.interpolate", &["size", "scale_factor"]),
        "GLU" => ("torch.nn.functional.glu", &["dim"]),
        "BCEWithLogitsLoss" => ("torch.nn.functional.binary_cross_entropy_with_logits", LOSS),
        "CosineSimilarity" => ("torch.nn.functional.cosine_similarity", &["dim"]),
        "CrossEntropyLoss" => ("torch.nn.functional.cross_entropy", LOSS),
        "HuberLoss" => ("torch.nn.functional.huber_loss", LOSS),
        "KLDivLoss" => ("torch.nn.functional.kl_div", LOSS),
        "L1Loss" => ("torch.nn.functional.l1_loss", LOSS),
        "MSELoss" => ("torch.nn.functional.mse_loss", LOSS),
        "NLLLoss" => ("torch.nn.functional.nll_loss", LOSS),
        "SmoothL1Loss" => ("torch.nn.functional.smooth_l1_loss", LOSS),
        "Dropout" => ("torch.nn.functional.dropout", &[]),
        "Embedding" => ("torch.nn.functional.embedding", &["weight"]),
        "Flatten" => ("torch.flatten", &["start_dim", "end_dim"]),
        "ELU" => ("torch.nn.functional.elu", &[]),
        "GELU" => ("torch.nn.functional.gelu", &[]),
        "Hardswish" => ("torch.nn.functional.hardswish", &[]),
        "Identity" => (IDENTITY, &[]),
        "LeakyReLU" => ("torch.nn.functional.leaky_relu", &[]),
        "Linear" => ("torch.nn.functional.linear", &["weight"]),
        "LogSoftmax" => ("torch.nn.functional.log_softmax", &[]),
        "Mish" => ("torch.nn.functional.mish", &[]),
        "Hardsigmoid" => ("torch.nn.functional.hardsigmoid", &[]),
        "Hardtanh" => ("torch.nn.functional.hardtanh", &[]),
        "LogSigmoid" => ("torch.nn.functional.logsigmoid", &[]),
        "SELU" => ("torch.nn.functional.selu", &[]),
        "Softplus" => ("torch.nn.functional.softplus", &[]),
        "Softsign" => ("torch.nn.functional.softsign", &[]),
        "Tanhshrink" => ("torch.nn.functional.tanhshrink", &[]),
        "ReLU" => ("torch.nn.functional.relu", &[]),
        "ReLU6" => ("torch.nn.functional.relu6", &[]),
        "SiLU" => ("torch.nn.functional.silu", &[]),
        "Sigmoid" => ("torch.sigmoid", &[]),
        "Softmax" => ("torch.nn.functional.softmax", &[]),
        "Softmin" => ("torch.nn.functional.softmin", &[]),
        "Tanh" => ("torch.tanh", &[]),
        _ => return None,
    })
}

/// The function of PyTorch that computes what a module of a known class gives, with all attributes that it takes.
fn computed_by(class: &str) -> Option<(&'static str, &'static [&'static str])> {
    const CONVOLUTION: &[&str] = &["weight", "bias", "stride", "padding", "dilation", "groups"];
    const POOLING: &[&str] =
        &["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"];
    const POOLING_OF_PLANES: &[&str] =
        &["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"];
    const MAXIMA: &[&str] =
        &["kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices"];
    const SPREADING: &[&str] =
        &["weight", "bias", "stride", "padding", "output_padding", "groups", "dilation"];
    const ROWS: &[&str] = &["normalized_shape", "weight", "bias", "eps"];
    Some(match class {
        "BCEWithLogitsLoss" => (
            "torch.nn.functional.binary_cross_entropy_with_logits",
            &["weight", "pos_weight", "reduction"],
        ),
        "AdaptiveAvgPool1d" => ("torch.nn.functional.adaptive_avg_pool1d", &["output_size"]),
        "AdaptiveAvgPool2d" => ("torch.nn.functional.adaptive_avg_pool2d", &["output_size"]),
        "AvgPool1d" => ("torch.nn.functional.avg_pool1d", POOLING),
        "AvgPool2d" => ("torch.nn.functional.avg_pool2d", POOLING_OF_PLANES),
        "BatchNorm1d" | "BatchNorm2d" => (
            BATCH_NORM,
            &["running_mean", "running_var", "weight", "bias", TRAINING, "momentum", "eps"],
        ),
        "Conv1d" => ("torch.nn.functional.conv1d", CONVOLUTION),
        "Conv2d" => ("torch.nn.functional.conv2d", CONVOLUTION),
        "ConvTranspose1d" => ("torch.nn.functional.conv_transpose1d", SPREADING),
        "ConvTranspose2d" => ("torch.nn.functional.conv_transpose2d", SPREADING),
        "CosineSimilarity" => ("torch.nn.functional.cosine_similarity", &["dim", "eps"]),
        "CrossEntropyLoss" => (
            "torch.nn.functional.cross_entropy",
            &["weight", "ignore_index", "reduction", "label_smoothing"],
        ),
        "Dropout" => ("torch.nn.functional.dropout", &["p", TRAINING]),
        "ELU" => ("torch.nn.functional.elu", &["alpha"]),
        "Embedding" => ("torch.nn.functional.embedding", &["weight", "padding_idx"]),
        "GELU" => ("torch.nn.functional.gelu", &["approximate"]),
        "GLU" => ("torch.nn.functional.glu", &["dim"]),
        "GroupNorm" => ("torch.nn.functional.group_norm", &["num_groups", "weight", "bias", "eps"]),
        "Hardsigmoid" => ("torch.nn.functional.hardsigmoid", &[]),
        "Hardswish" => ("torch.nn.functional.hardswish", &[]),
        "Hardtanh" => ("torch.nn.functional.hardtanh", &["min_val", "max_val"]),
        "HuberLoss" => ("torch.nn.functional.huber_loss", &["reduction", "delta"]),
        "KLDivLoss" => ("torch.nn.functional.kl_div", &["reduction", "log_target"]),
        "L1Loss" => ("torch.nn.functional.l1_loss", &["reduction"]),
        "LayerNorm" => ("torch.nn.functional.layer_norm", ROWS),
        "LeakyReLU" => ("torch.nn.functional.leaky_relu", &["negative_slope"]),
        "Linear" => ("torch.nn.functional.linear", &["weight", "bias"]),
        "LogSigmoid" => ("torch.nn.functional.logsigmoid", &[]),
        "LogSoftmax" => ("torch.nn.functional.log_softmax", &["dim"]),
        "MSELoss" => ("torch.nn.functional.mse_loss", &["reduction"]),
        "MaxPool1d" => ("torch.nn.functional.max_pool1d", MAXIMA),
        "MaxPool2d" => ("torch.nn.functional.max_pool2d", MAXIMA),
        "Mish" => ("torch.nn.functional.mish", &[]),
        "NLLLoss" => ("torch.nn.functional.nll_loss", &["weight", "ignore_index", "reduction"]),
        "PixelShuffle" => ("torch.nn.functional.pixel_shuffle", &["upscale_factor"]),
        "RMSNorm" => ("torch.nn.functional.rms_norm", &["normalized_shape", "weight", "eps"]),
        "ReLU" => ("torch.nn.functional.relu", &[]),
        "ReLU6" => ("torch.nn.functional.relu6", &[]),
        "SELU" => ("torch.nn.functional.selu", &[]),
        "SiLU" => ("torch.nn.functional.silu", &[]),
        "Sigmoid" => ("torch.sigmoid", &[]),
        "SmoothL1Loss" => ("torch.nn.functional.smooth_l1_loss", &["reduction", "beta"]),
        "Softmax" => ("torch.nn.functional.softmax", &["dim"]),
        "Softplus" => ("torch.nn.functional.softplus", &["beta", "threshold"]),
        "Softsign" => ("torch.nn.functional.softsign", &[]),
        "Unfold" => {
            ("torch.nn.functional.unfold", &["kernel_size", "dilation", "padding", "stride"])
        }
        "Tanhshrink" => ("torch.nn.functional.tanhshrink", &[]),
        "Tanh" => ("torch.tanh", &[]),
        _ => return None,
    })
}

/// The class of a sequence of modules at a dotted path.
pub(crate) fn sequence_class(path: &[Name]) -> Option<&'static str> {
    let class = torch_class(path)?;
    match class {
        // They hold parameters as others hold modules.
        "ParameterList" => Some(LIST),
        "ParameterDict" => Some(DICT),
        _ => [SEQUENTIAL, LIST, DICT].into_iter().find(|known| *known == class),
    }
}

/// What a parameter of a constructor is where nothing is given for it.
#[derive(Clone, Copy)]
enum Default {
    None,
    Flag(bool),
    Int(i128),
    Float(f64),
    Text(&'static str),
}

impl From<Default> for Value {
    fn from(default: Default) -> Value {
        match default {
            Default::None => Value::None,
            Default::Flag(flag) => Value::Bool(Some(flag)),
            Default::Int(number) => Value::Int(Some(number)),
            Default::Float(number) => Value::Float(Some(number)),
            Default::Text(text) => Value::Str(text.into()),
        }
    }
}

const INPLACE: (&str, Default) = ("inplace", Default::Flag(false));
const SIZE_AVERAGE: (&str, Default) = ("size_average", Default::None);
const REDUCE: (&str, Default) = ("reduce", Default::None);
const REDUCTION: (&str, Default) = ("reduction", Default::Text("mean"));
const WEIGHT: (&str, Default) = ("weight", Default::None);
const IGNORE_INDEX: (&str, Default) = ("ignore_index", Default::Int(-100));

/// A parameter's name and default.
type Kept = (&'static str, Default);

const OUTPUT_SIZE: Kept = ("output_size", Default::None);
const KERNEL_SIZE: Kept = ("kernel_size", Default::None);
const AVERAGE: &[Kept] = &[
    KERNEL_SIZE,
    ("stride", Default::None),
    ("padding", Default::Int(0)),
    ("ceil_mode", Default::Flag(false)),
    ("count_include_pad", Default::Flag(true)),
];
const AVERAGE_OF_PLANES: &[Kept] = &[
    KERNEL_SIZE,
    ("stride", Default::None),
    ("padding", Default::Int(0)),
    ("ceil_mode", Default::Flag(false)),
    ("count_include_pad", Default::Flag(true)),
    ("divisor_override", Default::None),
];
const MAXIMUM: &[Kept] = &[
    KERNEL_SIZE,
    ("stride", Default::None),
    ("padding", Default::Int(0)),
    ("dilation", Default::Int(1)),
    ("return_indices", Default::Flag(false)),
    ("ceil_mode", Default::Flag(false)),
];

/// Classes of `torch.nn` whose instances keep what the constructor is given as attributes of the same
/// names, by the parameters in order.
const KEEPERS: &[(&str, &[Kept])] = &[
    ("AdaptiveAvgPool1d", &[OUTPUT_SIZE]),
    ("AdaptiveAvgPool2d", &[OUTPUT_SIZE]),
    ("AvgPool1d", AVERAGE),
    ("AvgPool2d", AVERAGE_OF_PLANES),
    ("AvgPool3d", AVERAGE_OF_PLANES),
    ("MaxPool1d", MAXIMUM),
    ("MaxPool2d", MAXIMUM),
    ("MaxPool3d", MAXIMUM),
    ("PixelShuffle", &[("upscale_factor", Default::None)]),
    (
        "Unfold",
        &[
            KERNEL_SIZE,
            ("dilation", Default::Int(1)),
            ("padding", Default::Int(0)),
            ("stride", Default::Int(1)),
        ],
    ),
    ("Upsample", &[("size", Default::None), ("scale_factor", Default::None)]),
    ("Hardsigmoid", &[INPLACE]),
    ("Hardtanh", &[("min_val", Default::Float(-1.0)), ("max_val", Default::Float(1.0)), INPLACE]),
    ("LogSigmoid", &[]),
    ("Mish", &[INPLACE]),
    ("SELU", &[INPLACE]),
    ("Softplus", &[("beta", Default::Float(1.0)), ("threshold", Default::Float(20.0))]),
    ("Softsign", &[]),
    ("Tanhshrink", &[]),
    (
        "BCEWithLogitsLoss",
        &[WEIGHT, SIZE_AVERAGE, REDUCE, REDUCTION, ("pos_weight", Default::None)],
    ),
    ("CosineSimilarity", &[("dim", Default::Int(1)), ("eps", Default::Float(1e-8))]),
    (
        "CrossEntropyLoss",
        &[
            WEIGHT,
            SIZE_AVERAGE,
            IGNORE_INDEX,
            REDUCE,
            REDUCTION,
            ("label_smoothing", Default::Float(0.0)),
        ],
    ),
    ("Dropout", &[("p", Default::Float(0.5)), INPLACE]),
    ("ELU", &[("alpha", Default::Float(1.0)), INPLACE]),
    ("Flatten", &[("start_dim", Default::Int(1)), ("end_dim", Default::Int(-1))]),
    ("GELU", &[("approximate", Default::Text("none"))]),
    ("GLU", &[("dim", Default::Int(-1))]),
    ("Hardswish", &[INPLACE]),
    ("HuberLoss", &[REDUCTION, ("delta", Default::Float(1.0))]),
    ("Identity", &[]),
    ("KLDivLoss", &[SIZE_AVERAGE, REDUCE, REDUCTION, ("log_target", Default::Flag(false))]),
    ("L1Loss", &[SIZE_AVERAGE, REDUCE, REDUCTION]),
    ("LeakyReLU", &[("negative_slope", Default::Float(0.01)), INPLACE]),
    ("LogSoftmax", &[("dim", Default::None)]),
    ("MSELoss", &[SIZE_AVERAGE, REDUCE, REDUCTION]),
    ("NLLLoss", &[WEIGHT, SIZE_AVERAGE, IGNORE_INDEX, REDUCE, REDUCTION]),
    ("ReLU", &[INPLACE]),
    ("ReLU6", &[INPLACE]),
    ("SiLU", &[INPLACE]),
    ("Sigmoid", &[]),
    ("SmoothL1Loss", &[SIZE_AVERAGE, REDUCE, REDUCTION, ("beta", Default::Float(1.0))]),
    ("Softmax", &[("dim", Default::None)]),
    ("Softmin", &[("dim", Default::None)]),
    ("Tanh", &[]),
];

/// The name of a class of `torch.nn` whose constructor is known, at a dotted path.
pub(crate) fn known_class(path: &[Name]) -> Option<&'static str> {
    let class = torch_class(path)?;
    let known = WITH_PARAMETERS.iter().chain(KEEPERS.iter().map(|(class, _)| class));
    known.copied().find(|known| *known == class)
}

/// Classes of `torch.nn` that are tensors.
const TENSORS: &[&str] = &["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter"];

/// The name of a class of `torch.nn` at a dotted path, which is one of modules.
pub(crate) fn torch_class(path: &[Name]) -> Option<&str> {
    let [torch, nn, within @ ..] = path else { return None };
    let is_there = [&**torch, &**nn] == [TORCH, "nn"];
    match within {
        _ if !is_there => None,
        [class] => Some(&**class).filter(|class| !TENSORS.contains(class)),
        [modules, class] if &**modules == "modules" => Some(class),
        // Where it is defined.
        [modules, file, class] if &**modules == "modules" && &**file != "utils" => Some(class),
        _ => None,
    }
}

impl Host<'_> {
    /// An instance of a known class of `torch.nn`.
    pub(crate) fn torch_module(&mut self, class: &'static str, args: &Args<'_>) -> Value {
        let instance = self.object();
        if let Value::Object(number) = instance {
            self.modules.insert(number, class);
            self.set_attribute(number, &TRAINING.into(), Value::Bool(Some(true)));
            self.construct(number, class, args);
        }
        instance
    }

    /// Does to an object what the constructor of a known class of `torch.nn` does.
    pub(crate) fn construct(&mut self, object: usize, class: &str, args: &Args<'_>) {
        let named = with_named_options(class, args);
        let args = &named.as_deref().map_or(Args(args.0), Args);
        let typed = self.with_default_type(args);
        let args = &typed.as_deref().map_or(Args(args.0), Args);
        for (name, sets) in attributes(class, args) {
            let value = match sets {
                Sets::Value(value) => value,
                Sets::Parameter(shape) => self.parameter((class, name), shape, args),
            };
            self.set_attribute(object, &Name::from(name), value);
        }
    }

    /// The same where a run computes all numbers, by a function that is given all that a module has.
    fn computed_by_module(
        &mut self,
        object: usize,
        args: &[(Option<Name>, Value)],
        function: &str,
        from: &[&str],
    ) -> Value {
        let mut given = args.to_vec();
        for name in from {
            let value = match self.object_attribute(object, name) {
                Value::Tensor(tensor) => self.current(Value::Tensor(tensor)),
                value => value,
            };
            if !matches!(value, Value::None) {
                given.push((Some(Name::from(*name)), value));
            }
        }
        let made = self.call_external(function.split('.').map(Name::from).collect(), &given);
        if function == BATCH_NORM {
            // In training it takes them from what it is given.
            let running = ["running_mean", "running_var"];
            let running = running.map(|name| self.object_attribute(object, name).allocations());
            self.note_written(&running.concat());
        }
        made
    }

    /// What a call of a module of a known class gives: some make what a function of PyTorch does.
    pub(crate) fn call_torch_module(
        &mut self,
        object: usize,
        class: &str,
        args: &[(Option<Name>, Value)],
    ) -> Value {
        let first = Args(args).get(0, "input").or_else(|| Args(args).get(0, "x1"));
        let Some(input) = first.cloned() else { return Value::Unknown };
        if class == SEQUENTIAL {
            let children = self.children(object);
            let step = |input, child: Value| match child {
                Value::Object(child) => self.call_instance(child, &[(None, input)]),
                child => self.call_value(&child, &[(None, input)]),
            };
            return children
                .map_or(Value::Unknown, |children| children.into_iter().fold(input, step));
        }
        if self.launcher.is_some()
            && let Some((function, from)) = computed_by(class)
        {
            return self.computed_by_module(object, args, function, from);
        }
        let Some((function, from)) = function_of(class) else { return Value::Unknown };
        if function == IDENTITY {
            return input;
        }
        let mut given = args.to_vec();
        for name in from {
            match self.object_attribute(object, name) {
                // It is as if it were not given.
                Value::None => {}
                value => given.push((Some(Name::from(*name)), value)),
            }
        }
        let path: Vec<Name> = function.split('.').map(Name::from).collect();
        let made = external_call(&path, &Args(&given), self.sources.capability());
        let name = path.last().map_or("", |name| name);
        self.cast_automatically(name, made)
    }

    /// The modules in a sequence of them, where all are known.
    pub(crate) fn children(&self, object: usize) -> Option<Vec<Value>> {
        let class = self.modules.get(&object)?;
        let count = match self.object_attribute(object, COUNT) {
            Value::Int(Some(count)) if matches!(*class, SEQUENTIAL | LIST) => count,
            _ => return None,
        };
        let child = |at: i128| self.object_attribute(object, &at.to_string());
        Some((0..count).map(child).collect())
    }

    /// What a loop goes over: the modules of a sequence of them, or the names of modules.
    pub(crate) fn iterated(&mut self, iterable: Value) -> Value {
        match iterable {
            Value::Named(Resolution::Class(at)) => {
                self.members(at).map_or(Value::Unknown, Value::List)
            }
            Value::Object(object) if self.is_dict(object) => self.object_attribute(object, NAMES),
            Value::Object(object) => {
                self.children(object).map_or(Value::Object(object), Value::List)
            }
            Value::Tensor(tensor) => match tensor::rows(&tensor) {
                Some(rows) => Value::List(rows),
                None => Value::Tensor(tensor),
            },
            iterable => iterable,
        }
    }

    fn is_dict(&self, object: usize) -> bool {
        self.modules.get(&object) == Some(&DICT)
    }

    /// Modules by names.
    fn module_dict(&mut self, args: &Args<'_>) -> Value {
        let entries = match args.positional()[..] {
            [] => Vec::new(),
            [Value::Dict(entries)] => entries.to_vec(),
            _ => return Value::Unknown,
        };
        let instance = self.object();
        if let Value::Object(number) = instance {
            self.modules.insert(number, DICT);
            self.replace_attribute(number, &NAMES.into(), Value::List(Vec::new()));
            for (name, child) in entries {
                self.set_child(number, &name, child);
            }
        }
        instance
    }

    /// `modules[name] = child`.
    pub(crate) fn set_child(&mut self, object: usize, name: &Value, child: Value) {
        if !self.is_dict(object) {
            self.unfollowed = true;
            return self.change_sequence(object, "insert", None);
        }
        let names = match (self.object_attribute(object, NAMES), name) {
            (Value::List(mut names), Value::Str(_)) if self.doubt.has_run() => {
                if !names.contains(name) {
                    names.push(name.clone());
                }
                Value::List(names)
            }
            _ => Value::Unknown,
        };
        self.set_by_name(object, name, &child);
        self.replace_attribute(object, &NAMES.into(), names);
    }

    /// What `keys`, `values` or `items` gives of modules by names.
    pub(crate) fn of_dict(&self, object: usize, method: &str) -> Option<Value> {
        let Value::List(names) = self.object_attribute(object, NAMES) else { return None };
        let child = |name: &Value| self.child(&Value::Object(object), name);
        let each = |name: &Value| match method {
            "keys" => Some(name.clone()),
            "values" => child(name),
            "items" => Some(Value::Tuple(vec![name.clone(), child(name)?])),
            _ => None,
        };
        names.iter().map(each).collect::<Option<_>>().map(Value::List)
    }

    /// A module of a sequence by its place.
    pub(crate) fn child(&self, sequence: &Value, at: &Value) -> Option<Value> {
        let (object, at) = match (sequence, at) {
            (Value::Object(object), Value::Int(Some(at))) => (object, at),
            (Value::Object(object), Value::Str(name)) if self.is_dict(*object) => {
                return self.has_own(*object, name).then(|| self.object_attribute(*object, name));
            }
            _ => return None,
        };
        let children = self.children(*object)?;
        children.get(position(children.len(), *at)?).cloned()
    }

    /// Changes a sequence of modules by one of its methods; what is not followed leaves nothing known of
    /// how many there are.
    pub(crate) fn change_sequence(&mut self, object: usize, method: &str, added: Option<Value>) {
        let Some(children) = self.children(object) else { return };
        let certain = self.doubt.has_run() && method == "append";
        let added = added.filter(|_| certain);
        let count = added.as_ref().map(|_| children.len() as i128 + 1);
        let Some(attributes) = self.objects.get_mut(&object) else { return };
        attributes.insert(COUNT.into(), Value::Int(count));
        if let Some(added) = added {
            attributes.insert(children.len().to_string().into(), added);
        }
    }

    /// A sequence of modules.
    pub(crate) fn sequence(&mut self, class: &'static str, args: &Args<'_>) -> Value {
        if class == DICT {
            return self.module_dict(args);
        }
        let children = match (class, args.positional().as_slice()) {
            (SEQUENTIAL, children) => {
                let is_plain =
                    |child: &&Value| matches!(child, Value::Object(_) | Value::Callable(_));
                let all = children.iter().all(is_plain);
                all.then(|| children.iter().copied().cloned().collect())
            }
            (_, []) => Some(Vec::new()),
            (_, [Value::List(listed) | Value::Tuple(listed)]) => Some(listed.clone()),
            _ => None,
        };
        let instance = self.object();
        if let (Value::Object(number), Some(children)) = (&instance, children) {
            self.modules.insert(*number, class);
            let count = Value::Int(Some(children.len() as i128));
            self.set_attribute(*number, &COUNT.into(), count);
            for (at, child) in children.into_iter().enumerate() {
                self.set_attribute(*number, &at.to_string().into(), child);
            }
        }
        instance
    }

    fn parameter(&mut self, of: (&str, &str), shape: Vec<Value>, args: &Args<'_>) -> Value {
        let options = ["device", "dtype"].into_iter().filter_map(|option| {
            let given = args.keyword(option)?;
            Some((Some(Name::from(option)), given.clone()))
        });
        let made: Vec<_> = [(None, Value::Tuple(shape))].into_iter().chain(options).collect();
        let path = [TORCH, "empty"].map(Name::from);
        let tensor = external_call(&path, &Args(&made), self.sources.capability());
        let tensor = self.allocate(tensor, Contents::Unknown);
        let made = self.parameter_of(tensor);
        self.wanted.extend(made.allocations());
        let is_buffer = of.1.starts_with("running_");
        // A row of it is 0.
        let is_padded = args.get(2, "padding_idx").is_some_and(|at| *at != Value::None);
        let is_drawn = !(of.0 == "Embedding" && is_padded);
        if let Value::Tensor(tensor) = &made
            && let Some(contents) = self.begun(of, tensor).filter(|_| is_drawn)
        {
            self.note_filled(tensor.allocation().unwrap_or_default(), contents);
        }
        let made = self.current(made);
        self.watched_parameter(made, !is_buffer)
    }
}

/// At which position constructors of `torch.nn` take `device`; `dtype` stands behind it. Source: their signatures in
/// PyTorch 2.11.
fn position_of_device(class: &str) -> Option<usize> {
    Some(match class {
        "PReLU" => 2,
        "Linear" | "RMSNorm" => 3,
        "GroupNorm" | "LayerNorm" => 4,
        "BatchNorm1d" | "BatchNorm2d" => 5,
        "Conv1d" | "Conv2d" | "Conv3d" | "Embedding" => 9,
        "ConvTranspose1d" | "ConvTranspose2d" | "ConvTranspose3d" => 10,
        _ => return None,
    })
}

/// Arguments of a constructor with `device` and `dtype` by name, where they stand in order.
fn with_named_options(class: &str, args: &Args<'_>) -> Option<Vec<(Option<Name>, Value)>> {
    let at = position_of_device(class)?;
    let mut positional = 0..;
    let named = args.0.iter().map(|(name, value)| {
        let place = if name.is_none() { positional.next() } else { None };
        let option = match place {
            Some(place) if place == at => Some(Name::from("device")),
            Some(place) if place == at + 1 => Some(Name::from("dtype")),
            _ => name.clone(),
        };
        (option, value.clone())
    });
    (args.positional().len() > at).then(|| named.collect())
}

/// What the constructor of a known class sets, as far as its arguments are known.
fn attributes(class: &str, args: &Args<'_>) -> Vec<(&'static str, Sets)> {
    let given = |at, name| args.get(at, name).cloned().unwrap_or(Value::Unknown);
    let number = |at, name, default| match args.get(at, name) {
        Some(value) => value.clone(),
        None => Value::Float(default),
    };
    // A parameter that a flag may switch off, which is on where nothing is said.
    let optional = |flags: &[(usize, &str)], shape: Vec<Value>| {
        let flag = |(at, name): &(usize, &str)| args.get(*at, name).cloned();
        let mut values = flags.iter().filter_map(flag);
        match values.find(|value| *value != Value::Bool(Some(true))) {
            None => Sets::Parameter(shape),
            Some(Value::Bool(Some(false))) => Sets::Value(Value::None),
            Some(_) => Sets::Value(Value::Unknown),
        }
    };
    // A flag that is set unless it is given.
    let set_unless = |(at, name): (usize, &'static str)| {
        let flag = args.get(at, name).cloned().unwrap_or(Value::Bool(Some(true)));
        (name, Sets::Value(flag))
    };
    match class {
        "Linear" => {
            let (inputs, outputs) = (given(0, "in_features"), given(1, "out_features"));
            vec![
                ("weight", Sets::Parameter(vec![outputs.clone(), inputs.clone()])),
                ("bias", optional(&[(2, "bias")], vec![outputs.clone()])),
                ("in_features", Sets::Value(inputs)),
                ("out_features", Sets::Value(outputs)),
            ]
        }
        "Conv1d" | "Conv2d" | "Conv3d" => convolution(class, args),
        "ConvTranspose1d" | "ConvTranspose2d" | "ConvTranspose3d" => spreading(class, args),
        "Embedding" => {
            let (rows, columns) = (given(0, "num_embeddings"), given(1, "embedding_dim"));
            vec![
                ("weight", Sets::Parameter(vec![rows.clone(), columns.clone()])),
                ("num_embeddings", Sets::Value(rows)),
                (
                    "padding_idx",
                    Sets::Value(args.get(2, "padding_idx").cloned().unwrap_or(Value::None)),
                ),
                ("embedding_dim", Sets::Value(columns)),
            ]
        }
        "LayerNorm" | "RMSNorm" => {
            let shape = given(0, "normalized_shape");
            let shape = shape.elements().unwrap_or_else(|| vec![shape]);
            let affine = (2, "elementwise_affine");
            let mut sets = vec![
                ("weight", optional(&[affine], shape.clone())),
                ("normalized_shape", Sets::Value(Value::Tuple(shape.clone()))),
            ];
            match class {
                "LayerNorm" => {
                    sets.push(("bias", optional(&[affine, (3, "bias")], shape)));
                    sets.push(("eps", Sets::Value(number(1, "eps", Some(1e-5)))));
                }
                _ => {
                    let eps = args.get(1, "eps").cloned().unwrap_or(Value::None);
                    sets.push(("eps", Sets::Value(eps)));
                }
            }
            sets.push(set_unless(affine));
            sets
        }
        "GroupNorm" => {
            let channels = given(1, "num_channels");
            let affine = (3, "affine");
            vec![
                ("weight", optional(&[affine], vec![channels.clone()])),
                ("bias", optional(&[affine], vec![channels.clone()])),
                set_unless(affine),
                ("num_groups", Sets::Value(given(0, "num_groups"))),
                ("num_channels", Sets::Value(channels)),
                ("eps", Sets::Value(number(2, "eps", Some(1e-5)))),
            ]
        }
        "BatchNorm1d" | "BatchNorm2d" => {
            let features = given(0, "num_features");
            let (affine, tracked) = ((3, "affine"), (4, "track_running_stats"));
            vec![
                ("weight", optional(&[affine], vec![features.clone()])),
                ("bias", optional(&[affine], vec![features.clone()])),
                ("running_mean", optional(&[tracked], vec![features.clone()])),
                ("running_var", optional(&[tracked], vec![features.clone()])),
                set_unless(affine),
                set_unless(tracked),
                ("num_features", Sets::Value(features)),
                ("eps", Sets::Value(number(1, "eps", Some(1e-5)))),
                ("momentum", Sets::Value(number(2, "momentum", Some(0.1)))),
            ]
        }
        "PReLU" => {
            let count = args.get(0, "num_parameters").cloned().unwrap_or(Value::Int(Some(1)));
            vec![
                ("weight", Sets::Parameter(vec![count.clone()])),
                ("num_parameters", Sets::Value(count)),
            ]
        }
        _ => kept(class, args).map(|(name, value)| (name, Sets::Value(value))).collect(),
    }
}

/// A number for each dimension that a class moves along.
fn for_each(class: &str, given: Option<&Value>, default: i128) -> Value {
    let rank = class.trim_end_matches('d').chars().next_back().and_then(|rank| rank.to_digit(10));
    match given {
        None => Value::Tuple(vec![Value::Int(Some(default)); rank.unwrap_or(0) as usize]),
        Some(one @ Value::Int(_)) => Value::Tuple(vec![one.clone(); rank.unwrap_or(0) as usize]),
        Some(several) => several.clone(),
    }
}

/// What the constructor of a transposed convolution sets.
fn spreading(class: &str, args: &Args<'_>) -> Vec<(&'static str, Sets)> {
    let given = |at, name| args.get(at, name).cloned().unwrap_or(Value::Unknown);
    let each = |at, name, default| for_each(class, args.get(at, name), default);
    let (inputs, outputs) = (given(0, "in_channels"), given(1, "out_channels"));
    let groups = args.get(6, "groups").cloned().unwrap_or(Value::Int(Some(1)));
    let kernel = each(2, "kernel_size", 1);
    let of_group = binary(BinaryOp::FloorDiv, &outputs, &groups);
    let shape = kernel.elements().map_or(Sets::Value(Value::tensor(None)), |kernel| {
        Sets::Parameter([inputs.clone(), of_group].into_iter().chain(kernel).collect())
    });
    vec![
        ("weight", shape),
        ("in_channels", Sets::Value(inputs)),
        ("out_channels", Sets::Value(outputs)),
        ("kernel_size", Sets::Value(kernel)),
        ("stride", Sets::Value(each(3, "stride", 1))),
        ("padding", Sets::Value(each(4, "padding", 0))),
        ("output_padding", Sets::Value(each(5, "output_padding", 0))),
        ("groups", Sets::Value(groups)),
        ("dilation", Sets::Value(each(8, "dilation", 1))),
    ]
}

/// What the constructor of a convolution sets.
fn convolution(class: &str, args: &Args<'_>) -> Vec<(&'static str, Sets)> {
    let each = |given: Option<&Value>, default: i128| for_each(class, given, default);
    let given = |at, name| args.get(at, name).cloned().unwrap_or(Value::Unknown);
    let (inputs, outputs) = (given(0, "in_channels"), given(1, "out_channels"));
    let groups = args.get(6, "groups").cloned().unwrap_or(Value::Int(Some(1)));
    let kernel = each(args.get(2, "kernel_size"), 1);
    let of_group = binary(BinaryOp::FloorDiv, &inputs, &groups);
    let shape = kernel.elements().map_or(Sets::Value(Value::tensor(None)), |kernel| {
        Sets::Parameter([outputs.clone(), of_group].into_iter().chain(kernel).collect())
    });
    let bias = match args.get(7, "bias") {
        None | Some(Value::Bool(Some(true))) => Sets::Parameter(vec![outputs.clone()]),
        Some(Value::Bool(Some(false))) => Sets::Value(Value::None),
        Some(_) => Sets::Value(Value::Unknown),
    };
    vec![
        ("weight", shape),
        ("bias", bias),
        ("in_channels", Sets::Value(inputs)),
        ("out_channels", Sets::Value(outputs)),
        ("kernel_size", Sets::Value(kernel)),
        ("stride", Sets::Value(each(args.get(3, "stride"), 1))),
        ("padding", Sets::Value(each(args.get(4, "padding"), 0))),
        ("dilation", Sets::Value(each(args.get(5, "dilation"), 1))),
        ("groups", Sets::Value(groups)),
    ]
}

/// What a class keeps of the arguments of its constructor.
fn kept(class: &str, args: &Args<'_>) -> impl Iterator<Item = (&'static str, Value)> {
    let known = KEEPERS.iter().find(|(known, _)| *known == class);
    let params = known.map_or(&[][..], |(_, params)| params).iter().enumerate();
    params.map(|(at, (name, default))| {
        (*name, args.get(at, name).cloned().unwrap_or_else(|| (*default).into()))
    })
}
