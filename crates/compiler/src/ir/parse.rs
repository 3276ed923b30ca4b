//! Reads the text form of a function; `print` describes it.

use std::sync::Arc;

use cranelift_entity::EntityRef;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use thiserror::Error;

use super::layout_text::layout_from_text;
use super::{
    Arity, AttrField, Attrs, BufferType, Elem, Function, InstData, LaunchOptions, LayoutId, Level,
    Loc, LocData, Opcode, Operands, Param, Region, Scalar, Shape, Text, TileType, Type, Value,
    ValueData, ValueDef,
};
use crate::layout::LinearLayout;
use crate::source::{FileId, FileRange, TextRange};

/// Text that is no function.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {message}")]
pub struct ParseError {
    /// Line of the text, from 1.
    pub line: usize,
    /// What was expected, or what is wrong.
    pub message: String,
}

/// Reads one function. The result is well formed but not verified.
///
/// # Errors
/// The first place where the text departs from the form.
pub fn parse(text: &str) -> Result<Function, ParseError> {
    let mut parser = Parser::new(text);
    parser.function().map_err(|message| ParseError { line: parser.line(), message })?;
    Ok(parser.func)
}

type Parsed<T> = Result<T, String>;

struct Parser<'t> {
    text: &'t str,
    at: usize,
    func: Function,
    values: FxHashMap<u32, Value>,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Parser<'t> {
        let func = Function::new("", Level::Tile, LaunchOptions::default());
        Parser { text, at: 0, func, values: FxHashMap::default() }
    }

    fn line(&self) -> usize {
        self.text[..self.at].matches('\n').count() + 1
    }

    fn function(&mut self) -> Parsed<()> {
        self.tables()?;
        self.expect("kernel")?;
        self.expect("@")?;
        let name: Arc<str> = self.word()?.into();
        self.func.name = name.clone();
        self.func.locs[Loc::new(0)].function = name;
        while !self.eat("{") {
            self.header_field()?;
        }
        while self.eat("param") {
            self.param()?;
        }
        let body = self.func.body;
        self.region_rest(body)?;
        Ok(())
    }

    /// Layouts and locations follow the body but are needed while reading it.
    fn tables(&mut self) -> Parsed<()> {
        let mut start = 0;
        for line in self.text.split_inclusive('\n') {
            self.at = start;
            start += line.len();
            let line = line.trim_end();
            if let Some(rest) = line.strip_prefix("layout #") {
                self.layout_entry(rest)?;
            } else if let Some(rest) = line.strip_prefix("loc @") {
                self.loc_entry(rest)?;
            } else if let Some(rest) = line.strip_prefix("file ") {
                self.file_entry(rest)?;
            }
        }
        self.at = 0;
        Ok(())
    }

    fn layout_entry(&mut self, entry: &str) -> Parsed<()> {
        let (number, layout) = entry.split_once('=').ok_or("expected `=`")?;
        if number.trim().parse() != Ok(self.func.layouts.len()) {
            return Err("layouts are numbered from 0 in order".to_owned());
        }
        let layout: LinearLayout = layout_from_text(layout)?;
        self.func.layouts.push(layout);
        Ok(())
    }

    fn loc_entry(&mut self, entry: &str) -> Parsed<()> {
        let malformed = || "expected `N = FILE:START..END LINE:COL \"FUNCTION\"`".to_owned();
        let (number, rest) = entry.split_once('=').ok_or_else(malformed)?;
        if number.trim().parse() != Ok(self.func.locs.len()) {
            return Err("locations are numbered from 1 in order".to_owned());
        }
        let (function, call) = match rest.rsplit_once(" inlined @") {
            Some((front, call)) if !call.contains('"') => (front, Some(call)),
            _ => (rest, None),
        };
        let mut parts = function.trim().splitn(3, ' ');
        let (at, place, name) = (parts.next(), parts.next(), parts.next().ok_or_else(malformed)?);
        let (file, range) = at.and_then(|at| at.split_once(':')).ok_or_else(malformed)?;
        let (start, end) = range.split_once("..").ok_or_else(malformed)?;
        let (line, col) = place.and_then(|at| at.split_once(':')).ok_or_else(malformed)?;
        let number = |digits: &str| digits.trim().parse::<u32>().map_err(|_| malformed());
        let range = TextRange { start: number(start)?, end: number(end)? };
        let data = LocData {
            at: FileRange { file: FileId(number(file)?), range },
            line: number(line)?,
            col: number(col)?,
            function: Text::read(name)?.0,
            inlined_at: call.map(number).transpose()?.map(Loc::from_u32),
        };
        self.func.locs.push(data);
        Ok(())
    }

    fn file_entry(&mut self, entry: &str) -> Parsed<()> {
        let (number, path) = entry.split_once('=').ok_or("expected `=`")?;
        let number = number.trim().parse().map_err(|_| "expected the file's number".to_owned())?;
        self.func.files.insert(FileId(number), Text::read(path.trim())?.0);
        Ok(())
    }

    fn header_field(&mut self) -> Parsed<()> {
        let field = self.word()?.to_owned();
        self.expect("=")?;
        let value = self.word()?;
        let malformed = |_| format!("`{value}` is no value for `{field}`");
        let options = &mut self.func.options;
        match field.as_str() {
            "level" => {
                self.func.level = match value {
                    "tile" => Level::Tile,
                    "gpu" => Level::Gpu,
                    _ => return Err(format!("`{value}` is no level")),
                }
            }
            "num_warps" => options.num_warps = u32::read(value).map_err(malformed)?,
            "num_stages" => options.num_stages = u32::read(value).map_err(malformed)?,
            "num_ctas" => options.num_ctas = u32::read(value).map_err(malformed)?,
            "max_registers" => options.max_registers = Some(u32::read(value).map_err(malformed)?),
            "fp_fusion" => options.fp_fusion = bool::read(value).map_err(malformed)?,
            _ => return Err(format!("`{field}` is no launch option")),
        }
        Ok(())
    }

    fn param(&mut self) -> Parsed<()> {
        let number = self.value_number()?;
        self.expect(":")?;
        let ty = self.ty()?;
        let fields = self.fields()?;
        let field = |name: &str| {
            let found = fields.iter().find(|(field, _)| *field == name).map(|(_, text)| *text);
            found.ok_or_else(|| format!("missing attribute `{name}`"))
        };
        let param = Param {
            name: Text::read(field("name")?)?.0,
            signature: Text::read(field("signature")?)?.0,
            divisibility: u32::read(field("divisibility")?)?,
        };
        let value = self.func.add_param(param, ty);
        self.define(number, value)
    }

    /// Instructions up to the closing brace, which is consumed.
    fn region_rest(&mut self, region: Region) -> Parsed<()> {
        while !self.eat("}") {
            self.inst(region)?;
        }
        Ok(())
    }

    fn inst(&mut self, region: Region) -> Parsed<()> {
        let mut results = SmallVec::<[u32; 1]>::new();
        if self.rest().starts_with('%') {
            results.push(self.value_number()?);
            while self.eat(",") {
                results.push(self.value_number()?);
            }
            self.expect("=")?;
        }
        let mnemonic = self.word()?;
        let opcode = Opcode::from_mnemonic(mnemonic)
            .ok_or_else(|| format!("`{mnemonic}` is no operation"))?;
        let operands = self.operands(opcode)?;
        let fields = self.fields()?;
        let attrs = Attrs::read(opcode.info().attrs, &fields)?;
        let types = if self.eat(":") { self.types()? } else { Vec::new() };
        if types.len() != results.len() {
            return Err(format!("{} results but {} types", results.len(), types.len()));
        }
        self.expect("@")?;
        let loc = Loc::from_u32(self.number()?);
        let inst = self.func.insts.push(InstData {
            opcode,
            operands,
            attrs,
            results: SmallVec::new(),
            regions: SmallVec::new(),
            loc,
        });
        self.func.regions[region].insts.push(inst);
        // The regions cannot see the results, which are therefore defined after them; but values
        // are numbered in the order of printing, where results come first.
        for _ in 0..opcode.info().regions {
            let inner = self.region()?;
            self.func.insts[inst].regions.push(inner);
        }
        for (index, (number, ty)) in results.into_iter().zip(types).enumerate() {
            let def = ValueDef::Result(inst, index as u32);
            let value = self.func.values.push(ValueData { ty, def, name: None });
            self.func.insts[inst].results.push(value);
            self.define(number, value)?;
        }
        Ok(())
    }

    fn region(&mut self) -> Parsed<Region> {
        self.expect("{")?;
        let region = self.func.regions.push(Default::default());
        if self.eat("|") {
            while !self.eat("|") {
                let number = self.value_number()?;
                self.expect(":")?;
                let ty = self.ty()?;
                let value = self.func.add_argument(region, ty);
                self.define(number, value)?;
                self.eat(",");
            }
        }
        self.region_rest(region)?;
        Ok(region)
    }

    fn operands(&mut self, opcode: Opcode) -> Parsed<Operands> {
        let slots = opcode.info().operands;
        let mut operands: Operands =
            slots.iter().filter(|slot| slot.arity != Arity::Rest).map(|_| None).collect();
        let mut positional =
            slots.iter().enumerate().filter(|(_, slot)| slot.arity == Arity::One).map(|(at, _)| at);
        let takes_rest = slots.last().is_some_and(|slot| slot.arity == Arity::Rest);
        let named = |name: &str| {
            slots.iter().position(|slot| slot.name == name && slot.arity == Arity::Optional)
        };
        while let Some((name, value)) = self.operand()? {
            match name {
                Some(name) => {
                    let slot = named(name).ok_or_else(|| format!("no operand `{name}`"))?;
                    operands[slot] = Some(value);
                }
                None => match positional.next() {
                    Some(slot) => operands[slot] = Some(value),
                    None if takes_rest => operands.push(Some(value)),
                    None => return Err(format!("`{opcode}` takes fewer operands")),
                },
            }
            if !self.eat(",") {
                break;
            }
        }
        match positional.next() {
            Some(slot) => Err(format!("`{opcode}` lacks operand `{}`", slots[slot].name)),
            None => Ok(operands),
        }
    }

    fn operand(&mut self) -> Parsed<Option<(Option<&'t str>, Value)>> {
        if self.rest().starts_with('%') {
            return self.value().map(|value| Some((None, value)));
        }
        let rest = self.rest();
        let name_len = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if name_len == 0 || !rest[name_len..].starts_with('=') {
            return Ok(None);
        }
        let name = self.word()?;
        self.expect("=")?;
        self.value().map(|value| Some((Some(name), value)))
    }

    /// `{name=value, ...}`, or nothing.
    fn fields(&mut self) -> Parsed<Vec<(&'t str, &'t str)>> {
        let mut fields = Vec::new();
        if !self.eat("{") {
            return Ok(fields);
        }
        while !self.eat("}") {
            let name = self.word()?;
            self.expect("=")?;
            fields.push((name, self.field_value()?));
            self.eat(",");
        }
        Ok(fields)
    }

    fn field_value(&mut self) -> Parsed<&'t str> {
        let rest = self.rest();
        let mut depth = 0;
        let mut quoted = false;
        let mut escaped = false;
        for (at, c) in rest.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' if quoted => escaped = true,
                '"' => quoted = !quoted,
                _ if quoted => {}
                '[' => depth += 1,
                ']' => depth -= 1,
                ',' | '}' if depth == 0 => {
                    self.at += at;
                    return Ok(rest[..at].trim());
                }
                '\n' => break,
                _ => {}
            }
        }
        Err("expected `}` after the attributes".to_owned())
    }

    fn types(&mut self) -> Parsed<Vec<Type>> {
        let mut types = vec![self.ty()?];
        while self.eat(",") {
            types.push(self.ty()?);
        }
        Ok(types)
    }

    fn ty(&mut self) -> Parsed<Type> {
        if self.eat("token") {
            return Ok(Type::Token);
        }
        if self.eat("tensor_map") {
            return Ok(Type::TensorMap);
        }
        if self.eat("tile<") {
            let (shape, elem) = self.extents()?;
            let layout = if self.eat(",") { Some(self.layout_ref()?) } else { None };
            self.expect(">")?;
            return Ok(Type::Tile(TileType { elem, shape, layout }));
        }
        if self.eat("buffer<") {
            let (shape, elem) = self.extents()?;
            self.expect(",")?;
            self.expect("stages=")?;
            let stages = self.number()?;
            self.expect(",")?;
            let layout = self.layout_ref()?;
            self.expect(">")?;
            return Ok(Type::Buffer(BufferType { elem, shape, stages, layout }));
        }
        self.elem().map(Type::Scalar)
    }

    fn extents(&mut self) -> Parsed<(Shape, Elem)> {
        let mut shape = Shape::new();
        while self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            shape.push(self.number()?);
            self.expect("x")?;
        }
        Ok((shape, self.elem()?))
    }

    fn elem(&mut self) -> Parsed<Elem> {
        if self.eat("ptr<ptr<") {
            let elem = Elem::PtrPtr(self.scalar()?);
            self.expect(">>")?;
            return Ok(elem);
        }
        if self.eat("ptr<") {
            let elem = Elem::Ptr(self.scalar()?);
            self.expect(">")?;
            return Ok(elem);
        }
        self.scalar().map(Elem::Scalar)
    }

    fn scalar(&mut self) -> Parsed<Scalar> {
        let name = self.word()?;
        Scalar::from_name(name).ok_or_else(|| format!("`{name}` is no type"))
    }

    fn layout_ref(&mut self) -> Parsed<LayoutId> {
        self.expect("#")?;
        let number = self.number()?;
        if number as usize >= self.func.layouts.len() {
            return Err(format!("no layout #{number}"));
        }
        Ok(LayoutId::from_u32(number))
    }

    fn value_number(&mut self) -> Parsed<u32> {
        self.expect("%")?;
        self.number()
    }

    fn value(&mut self) -> Parsed<Value> {
        let number = self.value_number()?;
        self.values.get(&number).copied().ok_or_else(|| format!("%{number} is not defined yet"))
    }

    fn define(&mut self, number: u32, value: Value) -> Parsed<()> {
        match self.values.insert(number, value) {
            None => Ok(()),
            Some(_) => Err(format!("%{number} is defined twice")),
        }
    }

    /// The text from here on, white space and comments skipped.
    fn rest(&mut self) -> &'t str {
        loop {
            let rest = &self.text[self.at..];
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with(';') {
                return trimmed;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Parsed<()> {
        if self.eat(token) { Ok(()) } else { Err(format!("expected `{token}`")) }
    }

    fn word(&mut self) -> Parsed<&'t str> {
        let rest = self.rest();
        let len = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if len == 0 {
            return Err("expected a word".to_owned());
        }
        self.at += len;
        Ok(&rest[..len])
    }

    fn number(&mut self) -> Parsed<u32> {
        let rest = self.rest();
        let len = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        self.at += len;
        rest[..len].parse().map_err(|_| "expected a number".to_owned())
    }
}
