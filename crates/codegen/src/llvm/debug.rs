//! Metadata: launch bounds and debug locations.
//!
//! LLVM's debug locations name one line; ours are chains of inlined calls. So that nothing is
//! lost, the module pretends to come from one file in which location `n` of the IR stands on line
//! `n`; [`line_map`](crate::line_map) turns these lines into the real chains. LLVM merges and moves locations as
//! usual, and gives line 0 where it cannot tell.

use std::fmt::Write;

use super::{Emitter, quoted};

/// Name of the file whose lines are locations.
const LOCATIONS_FILE: &str = "locations";

impl Emitter<'_> {
    pub(super) fn write_metadata(&self, out: &mut String) {
        let first = self.func.locs.len();
        let [program, unit, file, ty, version, dwarf, reflect, bounds] =
            std::array::from_fn(|at| first + at);
        for loc in 0..first {
            let _ = writeln!(out, "!{loc} = !DILocation(line: {loc}, scope: !{program})");
        }
        let name = quoted(&self.func.name);
        let _ = write!(
            out,
            "!{program} = distinct !DISubprogram(name: {name}, linkageName: {name}, \
             scope: !{file}, file: !{file}, line: 1, type: !{ty}, unit: !{unit}, \
             spFlags: DISPFlagDefinition | DISPFlagOptimized)\n\
             !{unit} = distinct !DICompileUnit(language: DW_LANG_C, file: !{file}, \
             producer: \"tile\", isOptimized: true, runtimeVersion: 0, \
             emissionKind: LineTablesOnly)\n\
             !{file} = !DIFile(filename: \"{LOCATIONS_FILE}\", directory: \"\")\n\
             !{ty} = !DISubroutineType(types: !{{}})\n\
             !{version} = !{{i32 2, !\"Debug Info Version\", i32 3}}\n\
             !{dwarf} = !{{i32 2, !\"Dwarf Version\", i32 4}}\n\
             !{reflect} = !{{i32 4, !\"nvvm-reflect-ftz\", i32 1}}\n\
             !llvm.dbg.cu = !{{!{unit}}}\n\
             !llvm.module.flags = !{{!{version}, !{dwarf}, !{reflect}}}\n"
        );
        let threads = self.func.options.num_warps * 32;
        let mut annotations =
            vec![("kernel", 1), ("reqntidx", threads), ("reqntidy", 1), ("reqntidz", 1)];
        if let Some(registers) = self.func.options.max_registers {
            annotations.push(("maxnreg", registers));
        }
        let mut list = Vec::new();
        for (at, (key, value)) in annotations.into_iter().enumerate() {
            let id = bounds + at;
            let _ = writeln!(out, "!{id} = !{{ptr @{name}, !\"{key}\", i32 {value}}}");
            list.push(format!("!{id}"));
        }
        if !self.tensor_maps.is_empty() {
            // Counted from 1; the engine reads them where the launch has put them.
            let first = self.func.params.len() + 1;
            let maps = (first..first + self.tensor_maps.len()).map(|at| format!("i32 {at}"));
            let [id, numbers] = [0, 1].map(|more| bounds + list.len() + more);
            let maps: Vec<String> = maps.collect();
            let _ = write!(
                out,
                "!{id} = !{{ptr @{name}, !\"grid_constant\", !{numbers}}}\n\
                 !{numbers} = !{{{}}}\n",
                maps.join(", ")
            );
            list.push(format!("!{id}"));
        }
        let _ = writeln!(out, "!nvvm.annotations = !{{{}}}", list.join(", "));
    }
}
