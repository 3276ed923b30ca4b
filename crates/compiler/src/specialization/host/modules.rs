//! Modules of PyTorch itself: what their constructors set that host code passes to kernels.

use super::Host;
use super::arguments::Args;
use super::library::external_call;
use super::value::Value;
use crate::builtins::TORCH;
use crate::hir::Name;
use crate::specialization::contents::Contents;

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
    "Embedding",
    "GroupNorm",
    "LayerNorm",
    "Linear",
    "PReLU",
    "RMSNorm",
];

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

/// Classes of `torch.nn` whose instances keep what the constructor is given as attributes of the same
/// names, by the parameters in order.
const KEEPERS: &[(&str, &[Kept])] = &[
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
    ("GELU", &[("approximate", Default::Text("none"))]),
    ("GLU", &[("dim", Default::Int(-1))]),
    ("HuberLoss", &[REDUCTION, ("delta", Default::Float(1.0))]),
    ("KLDivLoss", &[SIZE_AVERAGE, REDUCE, REDUCTION, ("log_target", Default::Flag(false))]),
    ("L1Loss", &[SIZE_AVERAGE, REDUCE, REDUCTION]),
    ("LeakyReLU", &[("negative_slope", Default::Float(0.01)), INPLACE]),
    ("LogSoftmax", &[("dim", Default::None)]),
    ("MSELoss", &[SIZE_AVERAGE, REDUCE, REDUCTION]),
    ("NLLLoss", &[WEIGHT, SIZE_AVERAGE, IGNORE_INDEX, REDUCE, REDUCTION]),
    ("ReLU", &[INPLACE]),
    ("SiLU", &[INPLACE]),
    ("SmoothL1Loss", &[SIZE_AVERAGE, REDUCE, REDUCTION, ("beta", Default::Float(1.0))]),
    ("Softmax", &[("dim", Default::None)]),
    ("Softmin", &[("dim", Default::None)]),
];

/// The name of a class of `torch.nn` whose constructor is known, at a dotted path.
pub(super) fn known_class(path: &[Name]) -> Option<&'static str> {
    let class = torch_class(path)?;
    let known = WITH_PARAMETERS.iter().chain(KEEPERS.iter().map(|(class, _)| class));
    known.copied().find(|known| *known == class)
}

/// Classes of `torch.nn` that are tensors.
const TENSORS: &[&str] = &["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter"];

/// The name of a class of `torch.nn` at a dotted path, which is one of modules.
pub(super) fn torch_class(path: &[Name]) -> Option<&str> {
    match path {
        [torch, nn, class] if &**torch == TORCH && &**nn == "nn" => {
            Some(&**class).filter(|class| !TENSORS.contains(class))
        }
        _ => None,
    }
}

impl Host<'_> {
    /// An instance of a known class of `torch.nn`.
    pub(super) fn torch_module(&mut self, class: &str, args: &Args<'_>) -> Value {
        let instance = self.object();
        if let Value::Object(number) = instance {
            self.modules.insert(number);
            self.construct(number, class, args);
        }
        instance
    }

    /// Does to an object what the constructor of a known class of `torch.nn` does.
    pub(super) fn construct(&mut self, object: usize, class: &str, args: &Args<'_>) {
        for (name, sets) in attributes(class, args) {
            let value = match sets {
                Sets::Value(value) => value,
                Sets::Parameter(shape) => self.parameter(shape, args),
            };
            self.set_attribute(object, &Name::from(name), value);
        }
    }

    fn parameter(&mut self, shape: Vec<Value>, args: &Args<'_>) -> Value {
        let options = ["device", "dtype"].into_iter().filter_map(|option| {
            let given = args.keyword(option)?;
            Some((Some(Name::from(option)), given.clone()))
        });
        let made: Vec<_> = [(None, Value::Tuple(shape))].into_iter().chain(options).collect();
        let path = [TORCH, "empty"].map(Name::from);
        let tensor = external_call(&path, &Args(&made), self.sources.capability());
        let tensor = self.allocate(tensor, Contents::Unknown);
        self.parameter_of(tensor)
    }
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
        "Embedding" => {
            let (rows, columns) = (given(0, "num_embeddings"), given(1, "embedding_dim"));
            vec![
                ("weight", Sets::Parameter(vec![rows.clone(), columns.clone()])),
                ("num_embeddings", Sets::Value(rows)),
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
            sets
        }
        "GroupNorm" => {
            let channels = given(1, "num_channels");
            let affine = [(3, "affine")];
            vec![
                ("weight", optional(&affine, vec![channels.clone()])),
                ("bias", optional(&affine, vec![channels.clone()])),
                ("num_groups", Sets::Value(given(0, "num_groups"))),
                ("num_channels", Sets::Value(channels)),
                ("eps", Sets::Value(number(2, "eps", Some(1e-5)))),
            ]
        }
        "BatchNorm1d" | "BatchNorm2d" => {
            let features = given(0, "num_features");
            let (affine, tracked) = ([(3, "affine")], [(4, "track_running_stats")]);
            vec![
                ("weight", optional(&affine, vec![features.clone()])),
                ("bias", optional(&affine, vec![features.clone()])),
                ("running_mean", optional(&tracked, vec![features.clone()])),
                ("running_var", optional(&tracked, vec![features.clone()])),
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

/// What a class keeps of the arguments of its constructor.
fn kept(class: &str, args: &Args<'_>) -> impl Iterator<Item = (&'static str, Value)> {
    let known = KEEPERS.iter().find(|(known, _)| *known == class);
    let params = known.map_or(&[][..], |(_, params)| params).iter().enumerate();
    params.map(|(at, (name, default))| {
        (*name, args.get(at, name).cloned().unwrap_or_else(|| (*default).into()))
    })
}
