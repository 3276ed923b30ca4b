//! Convolutions along one or two axes.

use ndarray::{Array4, ArrayD, Axis};

use super::derived::Call;
use super::{Data, known, of, of_value};
use crate::host::code::arguments::Args;
use crate::host::value::{Tensor, Value};

/// Multiplications of one convolution; beyond, its numbers are not worked out.
const MAX_STEPS: usize = 1 << 23;

/// A convolution of an image of planes. One axis counts as the second of two.
struct Convolution {
    axes: usize,
    image: Array4<f64>,
    kernel: Array4<f64>,
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
    /// Of what it gives.
    shape: [usize; 4],
}

/// An element of four axes.
type At = [usize; 4];

/// What a function makes of `tensor` and its arguments; `None` for other functions.
pub(super) fn made_of(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    if name.starts_with("conv_transpose") {
        return transposed(name, tensor, args);
    }
    let all = Convolution::of(name, tensor, args)?;
    let bias = bias(args, all.shape[1])?;
    let mut made = Array4::from_shape_fn(all.shape, |(_, output, ..)| bias[output]);
    all.each_tap(|output, pixel, tap| made[output] += all.image[pixel] * all.kernel[tap]);
    Some(of(tensor)?.with(all.flat(made)))
}

/// What is added to each channel.
fn bias(args: &Args<'_>, channels: usize) -> Option<Vec<f64>> {
    let bias = match args.get(1, "bias").filter(|bias| **bias != Value::None) {
        Some(bias) => of_value(bias)?.numbers.iter().copied().collect(),
        None => vec![0.0; channels],
    };
    (bias.len() == channels).then_some(bias)
}

/// A transposed convolution: what the convolution with the same weight hands on to its input, of its own input
/// as the gradient.
fn transposed(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let axes = match name {
        "conv_transpose1d" => 1,
        "conv_transpose2d" => 2,
        _ => return None,
    };
    let told = |at: usize, name: &str, default: usize| told(args, (at, name), axes, default);
    let (stride, padding, more) =
        (told(2, "stride", 1)?, told(3, "padding", 0)?, told(4, "output_padding", 0)?);
    let groups = groups(args.get(5, "groups"))?;
    let dilation = told(6, "dilation", 1)?;
    let (padding, more) = if axes == 1 { ([0, padding[1]], [0, more[1]]) } else { (padding, more) };
    let given = planar(axes, &of(tensor)?.numbers)?;
    let kernel = planar(axes, &of_value(args.get(0, "weight")?)?.numbers)?;
    let (batch, channels, height, width) = given.dim();
    let (inputs, inner, rows, columns) = kernel.dim();
    (channels == inputs && inputs.is_multiple_of(groups)).then_some(())?;
    let length = |size: usize, taps: usize, at: usize| {
        let reach = dilation[at].checked_mul(taps.checked_sub(1)?)?.checked_add(1)?;
        let starts = size.checked_sub(1)?.checked_mul(stride[at])?;
        let whole = starts.checked_add(reach)?.checked_add(more[at])?;
        whole.checked_sub(padding[at].checked_mul(2)?)
    };
    let outputs = inner.checked_mul(groups)?;
    let shape = (batch, outputs, length(height, rows, 0)?, length(width, columns, 1)?);
    let sizes = [shape.0, shape.1, shape.2, shape.3];
    let count = sizes.iter().try_fold(1usize, |count, size| count.checked_mul(*size))?;
    (count <= super::MAX_COMPUTED).then_some(())?;
    let (bias, image) = (bias(args, outputs)?, Array4::zeros(shape));
    let shape = [batch, channels, height, width];
    let all = Convolution { axes, image, kernel, stride, padding, dilation, shape }.bounded()?;
    let mut made = Array4::from_shape_fn(all.image.raw_dim(), |(_, output, ..)| bias[output]);
    all.each_tap(|place, pixel, tap| made[pixel] += given[place] * all.kernel[tap]);
    Some(of(tensor)?.with(all.flat(made)))
}

/// Numbers for each axis, of which one may stand for all. One axis counts as the second of two.
fn told(
    args: &Args<'_>,
    (at, name): (usize, &str),
    axes: usize,
    default: usize,
) -> Option<[usize; 2]> {
    let told = match args.get(at, name) {
        None => vec![default; axes],
        Some(Value::Int(Some(one))) => vec![usize::try_from(*one).ok()?; axes],
        Some(several) => {
            let each = several.elements()?;
            let each = each.iter().map(|one| usize::try_from(known(one)?).ok());
            each.collect::<Option<Vec<usize>>>()?
        }
    };
    match told[..] {
        [one] => Some([default, one]),
        [first, second] if axes == 2 => Some([first, second]),
        _ => None,
    }
}

fn groups(told: Option<&Value>) -> Option<usize> {
    let groups = told.map_or(Some(1), known)?;
    usize::try_from(groups).ok().filter(|groups| *groups > 0)
}

/// What a convolution hands on to its input, its weight or its bias, of the gradient of what it gives.
pub(super) fn handed_on(call: Call<'_>, given: &ArrayD<f64>) -> Option<ArrayD<f64>> {
    let (tensor, args) = call.of_input()?;
    let all = Convolution::of(call.name, tensor, &args)?;
    let given = planar(all.axes, given)?;
    let of_image = std::ptr::eq(tensor, call.asked);
    let mut gradient = if of_image {
        Array4::zeros(all.image.raw_dim())
    } else if call.asks_for(args.get(0, "weight")) {
        Array4::zeros(all.kernel.raw_dim())
    } else {
        let sum = given.sum_axis(Axis(3)).sum_axis(Axis(2)).sum_axis(Axis(0));
        return call.asks_for(args.get(1, "bias")).then(|| sum.into_dyn());
    };
    all.each_tap(|output, pixel, tap| match of_image {
        true => gradient[pixel] += given[output] * all.kernel[tap],
        false => gradient[tap] += given[output] * all.image[pixel],
    });
    Some(all.flat(gradient))
}

fn planar(axes: usize, numbers: &ArrayD<f64>) -> Option<Array4<f64>> {
    let planes = match (axes, numbers.ndim()) {
        (1, 3) => numbers.clone().insert_axis(Axis(2)),
        (2, 4) => numbers.clone(),
        _ => return None,
    };
    planes.into_dimensionality().ok()
}

impl Convolution {
    fn of(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Convolution> {
        let axes = match name {
            "conv1d" => 1,
            "conv2d" => 2,
            _ => return None,
        };
        let told = |at: usize, name: &str, default: usize| told(args, (at, name), axes, default);
        let (stride, padding, dilation) =
            (told(2, "stride", 1)?, told(3, "padding", 0)?, told(4, "dilation", 1)?);
        let groups = groups(args.get(5, "groups"))?;
        let padding = if axes == 1 { [0, padding[1]] } else { padding };
        let image = planar(axes, &of(tensor)?.numbers)?;
        let kernel = planar(axes, &of_value(args.get(0, "weight")?)?.numbers)?;
        let (batch, channels, height, width) = image.dim();
        let (outputs, inner, rows, columns) = kernel.dim();
        if channels != inner.checked_mul(groups)? || outputs % groups != 0 || stride.contains(&0) {
            return None;
        }
        let length = |size: usize, taps: usize, at: usize| {
            let reach = dilation[at].checked_mul(taps.checked_sub(1)?)?.checked_add(1)?;
            let padded = padding[at].checked_mul(2)?.checked_add(size)?;
            Some(padded.checked_sub(reach)? / stride[at] + 1)
        };
        let shape = [batch, outputs, length(height, rows, 0)?, length(width, columns, 1)?];
        Convolution { axes, image, kernel, stride, padding, dilation, shape }.bounded()
    }

    /// The same, unless it takes too many multiplications.
    fn bounded(self) -> Option<Convolution> {
        let (_, inner, rows, columns) = self.kernel.dim();
        let mut extents = self.shape.into_iter().chain([inner, rows, columns]);
        let steps = extents.try_fold(1usize, |steps, size| steps.checked_mul(size))?;
        (steps <= MAX_STEPS).then_some(self)
    }

    /// Goes over all multiplications: what each adds to, the number of the image, and that of the kernel.
    fn each_tap(&self, mut tap: impl FnMut(At, At, At)) {
        let (outputs, inner, rows, columns) = self.kernel.dim();
        let (_, channels, height, width) = self.image.dim();
        let groups = channels.checked_div(inner).unwrap_or(1).max(1);
        let in_group = (outputs / groups).max(1);
        let along = |axis: usize, at: usize, tap: usize, size: usize| {
            let from = at * self.stride[axis] + tap * self.dilation[axis];
            from.checked_sub(self.padding[axis]).filter(|from| *from < size)
        };
        for (batch, output, y, x) in ndarray::indices(self.shape) {
            let first = output / in_group * inner;
            for (channel, row, column) in ndarray::indices((inner, rows, columns)) {
                let from = along(0, y, row, height).zip(along(1, x, column, width));
                if let Some((from, across)) = from {
                    let pixel = [batch, first + channel, from, across];
                    tap([batch, output, y, x], pixel, [output, channel, row, column]);
                }
            }
        }
    }

    /// Without the axis that was put in where there is one.
    fn flat(&self, planes: Array4<f64>) -> ArrayD<f64> {
        let planes = planes.into_dyn();
        let planes = if self.axes == 1 { planes.index_axis_move(Axis(2), 0) } else { planes };
        planes.as_standard_layout().into_owned()
    }
}
