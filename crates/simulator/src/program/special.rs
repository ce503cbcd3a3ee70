//! Special registers.

/// Special registers that `mov` reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecialRegister {
    /// `%tid.{x,y,z}`
    ThreadIndex(u8),
    /// `%ntid.{x,y,z}`
    ThreadCount(u8),
    /// `%ctaid.{x,y,z}`
    CtaIndex(u8),
    /// `%nctaid.{x,y,z}`
    CtaCount(u8),
    /// `%clusterid.{x,y,z}`
    ClusterIndex(u8),
    /// `%nclusterid.{x,y,z}`
    ClusterCount(u8),
    /// `%cluster_ctaid.{x,y,z}`
    ClusterCtaIndex(u8),
    /// `%cluster_nctaid.{x,y,z}`
    ClusterCtaCount(u8),
    /// `%cluster_ctarank`
    ClusterCtaRank,
    /// `%cluster_nctarank`
    ClusterCtaRankCount,
    /// `%laneid`
    LaneIndex,
    /// `%warpid`
    WarpIndex,
    /// `%nwarpid`
    WarpCount,
    /// `%smid`
    SmIndex,
    /// `%nsmid`
    SmCount,
    /// `%gridid`
    GridIndex,
    /// `%lanemask_{eq,le,lt,ge,gt}`
    LaneMask(LaneRelation),
    /// `%clock64`
    Clock,
    /// `%clock`: the lower half
    ClockLow,
    /// `%clock_hi`
    ClockHigh,
    /// `%globaltimer`, nanoseconds of simulated time
    GlobalTimer,
    /// `%globaltimer_lo`
    GlobalTimerLow,
    /// `%globaltimer_hi`
    GlobalTimerHigh,
    /// `%dynamic_smem_size`
    DynamicSharedBytes,
    /// `%total_smem_size`
    TotalSharedBytes,
}

/// Which lanes a `%lanemask_*` holds, relative to the reading lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneRelation {
    /// Equal.
    Equal,
    /// Less or equal.
    LessEqual,
    /// Less.
    Less,
    /// Greater or equal.
    GreaterEqual,
    /// Greater.
    Greater,
}
