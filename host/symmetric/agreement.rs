//! Agreement on success: no rank goes on to the next step unless every rank has done this one.
//!
//! Without it, a rank that fails leaves the others waiting in a collective that it never enters.

use super::{Rendezvous, Step, SymmetricError};

/// First byte of a status: whether the rank succeeded. What follows is the reason if it did not.
const SUCCEEDED: u8 = 1;
const FAILED: u8 = 0;

/// Shares this rank's result of a step. Returns it if every rank succeeded; otherwise this rank's own error, or
/// `peer_failed` of the lowest rank that failed. A successful value is dropped in that case, which releases it.
pub(crate) fn agree<T, E>(rendezvous: &dyn Rendezvous, step: Step, own: Result<T, E>) -> Result<T, E>
where
    E: std::fmt::Display + From<SymmetricError>,
{
    let status = match &own {
        Ok(_) => vec![SUCCEEDED],
        Err(error) => [&[FAILED], error.to_string().as_bytes()].concat(),
    };
    let statuses = rendezvous.all_gather(&status);
    // This rank's own error says more than what came of telling the others.
    let own = own?;
    let statuses = statuses.map_err(|source| SymmetricError::Rendezvous { step, source })?;
    for rank in 0..rendezvous.world_size() {
        let reason = match statuses.get(rank as usize).and_then(|status| status.split_first()) {
            Some((&SUCCEEDED, _)) => continue,
            Some((_, reason)) => String::from_utf8_lossy(reason).into_owned(),
            None => "it sent no status".to_owned(),
        };
        return Err(SymmetricError::PeerFailed { rank, step, reason }.into());
    }
    Ok(own)
}

/// Checks that every rank asks for the same, described in words.
pub(crate) fn agree_on_parameters(rendezvous: &dyn Rendezvous, parameters: &str) -> Result<(), SymmetricError> {
    let all = rendezvous
        .all_gather(parameters.as_bytes())
        .map_err(|source| SymmetricError::Rendezvous { step: Step::Configure, source })?;
    for (other, rank) in all.iter().zip(0..) {
        if other != parameters.as_bytes() {
            return Err(SymmetricError::Disagreement {
                rank,
                given: parameters.to_owned(),
                wanted: String::from_utf8_lossy(other).into_owned(),
            });
        }
    }
    Ok(())
}

/// The least of the ranks' values.
pub(crate) fn least(rendezvous: &dyn Rendezvous, own: u32) -> Result<u32, SymmetricError> {
    let all = rendezvous
        .all_gather(&own.to_le_bytes())
        .map_err(|source| SymmetricError::Rendezvous { step: Step::Configure, source })?;
    let values = all.iter().filter_map(|bytes| bytes.as_slice().try_into().ok().map(u32::from_le_bytes));
    Ok(values.fold(own, u32::min))
}
