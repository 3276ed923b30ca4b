//! Assertions and prints on the device, through the functions that the CUDA driver provides.

use tile_compiler::ir::{Attrs, InstData};

use super::code::escape;
use super::text::{Ty, Val};
use super::{Emitted, Emitter};

impl Emitter<'_> {
    /// A pointer to a string constant.
    fn string(&mut self, text: &str) -> String {
        let name = format!("@string{}", self.strings.len());
        let constant = format!(
            "{name} = private unnamed_addr addrspace(1) constant [{} x i8] c\"{}\\00\"",
            text.len() + 1,
            escape(text)
        );
        self.strings.push(constant);
        format!("addrspacecast (ptr addrspace(1) {name} to ptr)")
    }

    /// Stops the program where the mask is true and the condition is not.
    pub(super) fn device_assert(&mut self, data: &InstData) -> Emitted {
        let Attrs::Message(message) = &data.attrs else { return Err(self.unsupported(data)) };
        let conditions = self.operand(data, 0);
        let mask = data.operand_opt(1).map(|mask| self.registers(mask));
        let mut holds = Val::bool(true);
        for (at, condition) in conditions.into_iter().enumerate() {
            let excused = match &mask {
                Some(mask) => {
                    let masked = *mask.get(at).unwrap_or(&mask[0]);
                    let off = self.text.binary("xor", Ty::Int(1), masked, Val::Int(1));
                    self.text.binary("or", Ty::Int(1), condition, off)
                }
                None => condition,
            };
            holds = self.text.binary("and", Ty::Int(1), holds, excused);
        }
        let [fail, go_on] = [(); 2].map(|()| self.text.add_block());
        self.text.branch(holds, go_on, fail);
        self.text.switch_to(fail);
        let at = self.func.user_loc(data.loc);
        let place = &self.func.locs[at];
        let (line, file) = (place.line, place.at.file);
        let file = self.func.files.get(&file).map_or("", |path| path).to_owned();
        let function = place.function.to_string();
        let message = self.string(&message.text.0);
        let (file, function) = (self.string(&file), self.string(&function));
        self.text.declarations.insert("declare void @__assertfail(ptr, ptr, i32, ptr, i64)".into());
        self.text.line(format_args!(
            "call void @__assertfail(ptr {message}, ptr {file}, i32 {line}, ptr {function}, i64 1)"
        ));
        self.text.jump(go_on);
        self.text.switch_to(go_on);
        Ok(())
    }

    /// One line per element and operand: `pid (x, y, z) idx (i, j) prefix: value`.
    pub(super) fn device_print(&mut self, data: &InstData) -> Emitted {
        let Attrs::Message(message) = &data.attrs else { return Err(self.unsupported(data)) };
        let i32 = Ty::Int(32);
        let pids: Vec<Val> = ["x", "y", "z"]
            .iter()
            .map(|axis| self.text.call(&format!("llvm.nvvm.read.ptx.sreg.ctaid.{axis}"), i32, &[]))
            .collect();
        let operands: Vec<_> = data.uses().collect();
        let several = operands.len() > 1;
        if operands.is_empty() {
            let args: Vec<(Ty, Val)> = pids.iter().map(|&pid| (i32, pid)).collect();
            let text = format!("pid (%u, %u, %u) idx (){}\n", percent(&message.text.0));
            let leader = self.thread_without(31, self.func.options.num_warps - 1);
            self.print_line(leader, &text, &args);
        }
        for (number, &operand) in operands.iter().enumerate() {
            let ty = self.register_ty(operand)?;
            let (conversion, printed) = format_of(ty, message.hex);
            let shape = self.ty(operand).shape().to_vec();
            let owner = self.owner(operand);
            let indices = match self.layout(operand) {
                Some(layout) => self.element_indices(layout),
                None => vec![Val::Int(0)],
            };
            let places = vec!["%u"; shape.len()].join(", ");
            let label = if several { format!("(operand {number}) ") } else { String::new() };
            let text = format!(
                "pid (%u, %u, %u) idx ({places}){}{label}{conversion}\n",
                percent(&message.text.0)
            );
            for (value, index) in self.registers(operand).into_iter().zip(indices) {
                let mut args: Vec<(Ty, Val)> = pids.iter().map(|&pid| (i32, pid)).collect();
                let mut shift: i64 =
                    shape.iter().map(|extent| i64::from(extent.trailing_zeros())).sum();
                for &extent in &shape {
                    shift -= i64::from(extent.trailing_zeros());
                    let moved = self.text.binary("lshr", i32, index, Val::Int(shift));
                    let mask = Val::Int(i64::from(extent) - 1);
                    args.push((i32, self.text.binary("and", i32, moved, mask)));
                }
                let value = match (ty, printed) {
                    (Ty::Half | Ty::BFloat | Ty::Float, _) => {
                        self.text.cast("fpext", ty, value, Ty::Double)
                    }
                    (Ty::Ptr, _) => self.text.bitcast(ty, value, Ty::Int(64)),
                    (Ty::Int(1), printed) => self.text.cast("zext", ty, value, printed),
                    (_, printed) => self.text.cast("sext", ty, value, printed),
                };
                args.push((printed, value));
                self.print_line(owner, &text, &args);
            }
        }
        Ok(())
    }

    fn print_line(&mut self, predicate: Option<Val>, text: &str, args: &[(Ty, Val)]) {
        let [print, go_on] = [(); 2].map(|()| self.text.add_block());
        match predicate {
            Some(predicate) => self.text.branch(predicate, print, go_on),
            None => self.text.jump(print),
        }
        self.text.switch_to(print);
        let format = self.string(text);
        let fields: Vec<String> = args.iter().map(|(ty, _)| ty.to_string()).collect();
        let fields = format!("{{ {} }}", fields.join(", "));
        // In the entry block it is part of the frame.
        let buffer = self
            .in_block(self.entry, |this| this.text.op(format_args!("alloca {fields}, align 8")));
        for (at, (ty, value)) in args.iter().enumerate() {
            let field =
                self.text.op(format_args!("getelementptr {fields}, ptr {buffer}, i32 0, i32 {at}"));
            self.text.line(format_args!("store {ty} {value}, ptr {field}"));
        }
        self.text.declarations.insert("declare i32 @vprintf(ptr, ptr)".into());
        self.text.op(format_args!("call i32 @vprintf(ptr {format}, ptr {buffer})"));
        self.text.jump(go_on);
        self.text.switch_to(go_on);
    }
}

/// Text as a part of a format string.
fn percent(text: &str) -> String {
    text.replace('%', "%%")
}

/// How C's `printf` shows a register, and the type that it takes.
fn format_of(ty: Ty, hex: bool) -> (&'static str, Ty) {
    match ty {
        Ty::Ptr => ("%p", Ty::Int(64)),
        Ty::Half | Ty::BFloat | Ty::Float | Ty::Double => ("%f", Ty::Double),
        Ty::Int(64) => (if hex { "0x%016llx" } else { "%lld" }, Ty::Int(64)),
        Ty::Int(_) => (if hex { "0x%08x" } else { "%d" }, Ty::Int(32)),
    }
}
