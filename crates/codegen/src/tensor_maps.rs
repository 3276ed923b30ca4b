//! The tensor maps that a kernel takes behind its other parameters.

use tile_compiler::artifact::{ProductOfParams, TensorMap};
use tile_compiler::gpu::bulk::Product;
use tile_compiler::ir::{Attrs, Function, InstData, Opcode};

/// The maps of `func` in the order in which it takes them: equal ones once.
pub(crate) fn of(func: &Function) -> Vec<TensorMap> {
    let insts = func.walk().into_iter().map(|inst| &func.insts[inst]);
    let mut maps = Vec::new();
    for map in insts.filter_map(|data| tensor_map(func, data)) {
        if !maps.contains(&map) {
            maps.push(map);
        }
    }
    maps
}

/// The map that an operation gives, if it gives one.
pub(crate) fn tensor_map(func: &Function, data: &InstData) -> Option<TensorMap> {
    let (Opcode::TensorMap, Attrs::Boxes(boxes)) = (data.opcode, &data.attrs) else { return None };
    let products: Option<Vec<Product>> = data.uses().map(|it| Product::of(func, it)).collect();
    let products = products?;
    let (base, sizes) = products.split_first()?;
    let base = &func.params[*base.params.first()?];
    let (shape, strides) = sizes.split_at(boxes.extents.len());
    let named = |product: &Product| ProductOfParams {
        factor: product.factor,
        params: product.params.iter().map(|&at| func.params[at].name.to_string()).collect(),
    };
    Some(TensorMap {
        ty: base.signature.trim_start_matches('*').trim_start_matches('k').to_owned(),
        base: base.name.to_string(),
        shape: shape.iter().map(named).collect(),
        strides: strides.iter().map(named).collect(),
        extents: boxes.extents.to_vec(),
        swizzle_bytes: boxes.swizzle,
    })
}
