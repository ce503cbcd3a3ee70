//! Special registers by name (PTX ISA, "Special Registers").

use crate::program::{LaneRelation, SpecialRegister};
use crate::ptx::ast::Type;

/// The special register of a name and component (`""` or with its dot), with the types that `mov` may read it as.
pub(super) fn find(name: &str, component: &str) -> Option<(SpecialRegister, u32)> {
    use SpecialRegister as S;
    if !component.is_empty() {
        let axis = match component {
            ".x" => 0,
            ".y" => 1,
            ".z" => 2,
            _ => return None,
        };
        let register = match name {
            "%tid" => S::ThreadIndex(axis),
            "%ntid" => S::ThreadCount(axis),
            "%ctaid" => S::CtaIndex(axis),
            "%nctaid" => S::CtaCount(axis),
            "%clusterid" => S::ClusterIndex(axis),
            "%nclusterid" => S::ClusterCount(axis),
            "%cluster_ctaid" => S::ClusterCtaIndex(axis),
            "%cluster_nctaid" => S::ClusterCtaCount(axis),
            _ => return None,
        };
        return Some((register, 32));
    }
    Some(match name {
        "%cluster_ctarank" => (S::ClusterCtaRank, 32),
        "%cluster_nctarank" => (S::ClusterCtaRankCount, 32),
        "%laneid" => (S::LaneIndex, 32),
        "%warpid" => (S::WarpIndex, 32),
        "%nwarpid" => (S::WarpCount, 32),
        "%smid" => (S::SmIndex, 32),
        "%nsmid" => (S::SmCount, 32),
        "%gridid" => (S::GridIndex, 64),
        "%lanemask_eq" => (S::LaneMask(LaneRelation::Equal), 32),
        "%lanemask_le" => (S::LaneMask(LaneRelation::LessEqual), 32),
        "%lanemask_lt" => (S::LaneMask(LaneRelation::Less), 32),
        "%lanemask_ge" => (S::LaneMask(LaneRelation::GreaterEqual), 32),
        "%lanemask_gt" => (S::LaneMask(LaneRelation::Greater), 32),
        "%clock" => (S::ClockLow, 32),
        "%clock_hi" => (S::ClockHigh, 32),
        "%clock64" => (S::Clock, 64),
        "%globaltimer" => (S::GlobalTimer, 64),
        "%globaltimer_lo" => (S::GlobalTimerLow, 32),
        "%globaltimer_hi" => (S::GlobalTimerHigh, 32),
        "%dynamic_smem_size" => (S::DynamicSharedBytes, 32),
        "%total_smem_size" => (S::TotalSharedBytes, 32),
        _ => return None,
    })
}

/// Whether a name is a special register, with or without its component.
pub(super) fn is_special(name: &str) -> bool {
    find(name, "").is_some() || find(name, ".x").is_some()
}

/// Whether `mov` of this type may read a special register of this width.
pub(super) fn readable_as(ty: Type, bits: u32) -> bool {
    matches!(ty, Type::U32 | Type::S32 | Type::B32 | Type::U64 | Type::S64 | Type::B64) && ty.bits() == bits
}
