//! Merges columns.

use super::live::LiveDocuments;
use crate::Result;
use crate::index::stop::StopSignal;
use crate::segment::FileMeta;
use crate::segment::read::FILES;
use crate::segment::write::{ColumnTarget, DocumentValuesBody, write_column};

/// Writes the values of the live documents of all segments, as if they had been written at once; `None` if
/// none of them has a value.
pub(super) fn merge_column(
    target: ColumnTarget<'_>,
    inputs: &[LiveDocuments<'_>],
    stop: &StopSignal,
) -> Result<Option<FileMeta>> {
    write_column(target, &mut |body| {
        inputs.iter().try_for_each(|input| {
            stop.check()?;
            read_live(input, target.number, body)
        })
    })
}

/// Calls `body` with the values of each live document of a segment.
fn read_live(input: &LiveDocuments<'_>, number: usize, body: &mut DocumentValuesBody<'_>) -> Result<()> {
    let mut next = 0;
    let mut skip_to = |end: u32, body: &mut DocumentValuesBody<'_>| {
        let without_values = std::mem::replace(&mut next, end + 1)..end;
        let live = without_values.filter(|document| input.number(*document).is_some());
        live.into_iter().try_for_each(|_| body(&[]))
    };
    if let Some(column) = input.segment().column(number) {
        column.for_each(&FILES, |document, values| {
            skip_to(document, body)?;
            if input.number(document).is_some() { body(values) } else { Ok(()) }
        })?;
    }
    skip_to(input.segment().documents(), body)
}
