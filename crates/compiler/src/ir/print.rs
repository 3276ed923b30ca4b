//! The text form of a function.
//!
//! ```text
//! kernel @add level=tile num_warps=4 num_stages=3 num_ctas=1 fp_fusion=true {
//!   param %0 : ptr<f32> {name="x_ptr", signature="*fp32", divisibility=16}
//!   %1 = program_id {axis=0} : i32 @1
//!   %2 = load %0, mask=%1 {cache=default, evict=normal, volatile=false} : f32 @1
//!   %3 = if %1 : f32 @2 {
//!     yield %2 @2
//!   } {
//!     yield %2 @2
//!   }
//!   return @0
//! }
//! layout #0 = ...
//! loc @1 = 0:12..20 2:5 "add"
//! loc @2 = 0:12..20 3:5 "helper" inlined @1
//! file 0 = "kernels/add.py"
//! ```
//!
//! Values are numbered in the order in which they are printed, so that text is independent of how
//! the arenas grew. Every instruction ends in the location it comes from; the tables follow the
//! body. Location 0 is the unknown one.

use std::fmt::{self, Write};

use rustc_hash::FxHashMap;

use super::layout_text::layout_to_text;
use super::{Arity, Function, Inst, InstData, LayoutId, Level, Loc, Region, Text, Type, Value};
use crate::ir::AttrField;

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printer::new(self, f).function()
    }
}

struct Printer<'a, 'f> {
    func: &'a Function,
    out: &'a mut fmt::Formatter<'f>,
    values: FxHashMap<Value, usize>,
    locs: Vec<Loc>,
    loc_numbers: FxHashMap<Loc, usize>,
    layouts: Vec<LayoutId>,
    indent: usize,
}

impl<'a, 'f> Printer<'a, 'f> {
    fn new(func: &'a Function, out: &'a mut fmt::Formatter<'f>) -> Self {
        let mut printer = Printer {
            func,
            out,
            values: FxHashMap::default(),
            locs: Vec::new(),
            loc_numbers: FxHashMap::default(),
            layouts: Vec::new(),
            indent: 1,
        };
        printer.loc_number(Loc::from_u32(0));
        printer
    }

    fn function(&mut self) -> fmt::Result {
        let func = self.func;
        let options = &func.options;
        write!(
            self.out,
            "kernel @{} level={} num_warps={} num_stages={} num_ctas={} fp_fusion={}",
            func.name,
            level_name(func.level),
            options.num_warps,
            options.num_stages,
            options.num_ctas,
            options.fp_fusion
        )?;
        if let Some(limit) = options.max_registers {
            write!(self.out, " max_registers={limit}")?;
        }
        self.out.write_str(" {\n")?;
        for (param, &value) in func.params.iter().zip(&func.regions[func.body].args) {
            let number = self.define(value);
            write!(self.out, "  param %{number} : ")?;
            self.ty(func.ty(value))?;
            self.out.write_str(" {name=")?;
            Text(param.name.clone()).write(self.out)?;
            self.out.write_str(", signature=")?;
            Text(param.signature.clone()).write(self.out)?;
            writeln!(self.out, ", divisibility={}}}", param.divisibility)?;
        }
        for &inst in &func.regions[func.body].insts {
            self.inst(inst)?;
        }
        self.out.write_str("}\n")?;
        self.tables()
    }

    fn inst(&mut self, inst: Inst) -> fmt::Result {
        let func = self.func;
        let data = &func.insts[inst];
        write!(self.out, "{:1$}", "", self.indent * 2)?;
        self.results(data)?;
        write!(self.out, "{}", data.opcode)?;
        self.operands(data)?;
        write!(self.out, "{}", data.attrs)?;
        self.types(data.results.iter().map(|&result| func.ty(result)))?;
        let loc = self.loc_number(data.loc);
        write!(self.out, " @{loc}")?;
        for &region in &data.regions {
            self.region(region)?;
        }
        self.out.write_char('\n')
    }

    fn results(&mut self, data: &InstData) -> fmt::Result {
        for (at, &result) in data.results.iter().enumerate() {
            let number = self.define(result);
            write!(self.out, "{}%{number}", if at == 0 { "" } else { ", " })?;
        }
        if data.results.is_empty() { Ok(()) } else { self.out.write_str(" = ") }
    }

    /// Optional slots print as `name=%n`; the others stand in order.
    fn operands(&mut self, data: &InstData) -> fmt::Result {
        let slots = data.opcode.info().operands;
        let mut separator = " ";
        for (at, operand) in data.operands.iter().enumerate() {
            let Some(value) = operand else { continue };
            self.out.write_str(separator)?;
            separator = ", ";
            if let Some(slot) = slots.get(at).filter(|slot| slot.arity == Arity::Optional) {
                write!(self.out, "{}=", slot.name)?;
            }
            self.value(*value)?;
        }
        Ok(())
    }

    fn types<'t>(&mut self, types: impl Iterator<Item = &'t Type>) -> fmt::Result {
        for (at, ty) in types.enumerate() {
            self.out.write_str(if at == 0 { " : " } else { ", " })?;
            self.ty(ty)?;
        }
        Ok(())
    }

    fn region(&mut self, region: Region) -> fmt::Result {
        let func = self.func;
        let data = &func.regions[region];
        self.out.write_str(" {")?;
        if !data.args.is_empty() {
            self.out.write_str(" |")?;
            for (at, &arg) in data.args.iter().enumerate() {
                let number = self.define(arg);
                write!(self.out, "{}%{number}: ", if at == 0 { "" } else { ", " })?;
                self.ty(func.ty(arg))?;
            }
            self.out.write_str("|")?;
        }
        self.out.write_str("\n")?;
        self.indent += 1;
        for &inst in &data.insts {
            self.inst(inst)?;
        }
        self.indent -= 1;
        write!(self.out, "{:1$}}}", "", self.indent * 2)
    }

    fn tables(&mut self) -> fmt::Result {
        for (number, &layout) in std::mem::take(&mut self.layouts).iter().enumerate() {
            writeln!(
                self.out,
                "layout #{number} = {}",
                layout_to_text(&self.func.layouts[layout])
            )?;
        }
        // Printing a location numbers the call it was inlined at, which lengthens the list.
        let mut number = 1;
        while let Some(&loc) = self.locs.get(number) {
            let data = self.func.locs[loc].clone();
            write!(
                self.out,
                "loc @{number} = {}:{}..{} {}:{} ",
                data.at.file.0, data.at.range.start, data.at.range.end, data.line, data.col
            )?;
            Text(data.function).write(self.out)?;
            if let Some(call) = data.inlined_at {
                let call = self.loc_number(call);
                write!(self.out, " inlined @{call}")?;
            }
            self.out.write_char('\n')?;
            number += 1;
        }
        for (file, path) in &self.func.files {
            write!(self.out, "file {} = ", file.0)?;
            Text(path.clone()).write(self.out)?;
            self.out.write_char('\n')?;
        }
        Ok(())
    }

    fn define(&mut self, value: Value) -> usize {
        let next = self.values.len();
        *self.values.entry(value).or_insert(next)
    }

    /// An undefined value prints as `%?`, so that broken functions can still be shown.
    fn value(&mut self, value: Value) -> fmt::Result {
        match self.values.get(&value) {
            Some(number) => write!(self.out, "%{number}"),
            None => self.out.write_str("%?"),
        }
    }

    fn ty(&mut self, ty: &Type) -> fmt::Result {
        let Some(layout) = ty.layout() else { return write!(self.out, "{ty}") };
        let known = self.layouts.iter().position(|&known| known == layout);
        let number = known.unwrap_or_else(|| {
            self.layouts.push(layout);
            self.layouts.len() - 1
        });
        write!(self.out, "{}", renumber_layout(ty, number))
    }

    fn loc_number(&mut self, loc: Loc) -> usize {
        *self.loc_numbers.entry(loc).or_insert_with(|| {
            self.locs.push(loc);
            self.locs.len() - 1
        })
    }
}

fn renumber_layout(ty: &Type, number: usize) -> Type {
    let layout = LayoutId::from_u32(number as u32);
    match ty {
        Type::Buffer(buffer) => Type::Buffer(super::BufferType { layout, ..buffer.clone() }),
        other => other.with_layout(layout),
    }
}

pub(super) fn level_name(level: Level) -> &'static str {
    match level {
        Level::Tile => "tile",
        Level::Gpu => "gpu",
    }
}
