//! Accesses at addresses that are not known, and the memory that they may be to.

use super::arguments::may_share;
use super::elements::Access;
use super::roots::Roots;
use crate::ir::{Function, Inst, Opcode};
use crate::specialization::KnownLaunch;

/// The parameters in whose memory something at an address that is not known may happen.
pub(super) struct Unfollowed<'s> {
    func: &'s Function,
    launch: &'s KnownLaunch,
    /// `None` where it may be any memory.
    params: Option<Vec<usize>>,
}

impl<'s> Unfollowed<'s> {
    /// Those of the operations of which `is_meant` holds and that are not among `accesses`.
    pub(super) fn of(
        func: &'s Function,
        launch: &'s KnownLaunch,
        accesses: &[Access],
        is_meant: impl Fn(Opcode) -> bool,
    ) -> Unfollowed<'s> {
        let known = |inst: &Inst| accesses.iter().any(|access| access.inst == *inst);
        let insts = func
            .walk()
            .into_iter()
            .filter(|inst| is_meant(func.insts[*inst].opcode) && !known(inst));
        let insts: Vec<Inst> = insts.collect();
        let roots = (!insts.is_empty()).then(|| Roots::of(func));
        let params = insts.into_iter().map(|inst| {
            let data = &func.insts[inst];
            let is_followed = data.opcode != Opcode::InlineAsm;
            roots.as_ref()?.params(data.operand_opt(0).filter(|_| is_followed)?)
        });
        let params: Option<Vec<Vec<usize>>> = params.collect();
        Unfollowed { func, launch, params: params.map(|params| params.concat()) }
    }

    /// Whether one of them may be to the memory of `param`.
    pub(super) fn may_reach(&self, param: usize) -> bool {
        let Some(params) = &self.params else { return true };
        params.iter().any(|other| may_share(self.func, self.launch, *other, param))
    }
}
