//! `tierdex copy`: copies an index to another directory.

use crate::failure::{Outcome, output_error};
use crate::index_size::total_bytes;
use crate::{interrupt, messages::make_printable, open, size};
use clap::Args;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::time::Instant;
use tierdex::StopSignal;

#[derive(Args)]
#[command(after_help = "\
The copy is the newest commit of the index, with the same bytes, each file verified
by its checksums. A writer may be at work on the index. The directory of the copy
appears as an index when everything is copied.
")]
pub struct CopyCommandArguments {
    /// Directory of the index
    pub dir: PathBuf,
    /// Directory of the copy, which is created; it must not hold an index
    to: PathBuf,
}

pub fn run_copy(arguments: &CopyCommandArguments) -> Outcome {
    let start = Instant::now();
    open::open_directory(&arguments.dir)?;
    let stop = StopSignal::default();
    let _watched = interrupt::raise_on_signal(stop.clone());
    let to = super::index::output_disk(&arguments.to)?;
    let copied = tierdex::copy_index(&arguments.dir, &arguments.to, &stop);
    let manifest = copied.inspect_err(|_| to.remove_created())?;
    writeln!(
        stdout(),
        "{}: commit {}, {}, {} in {:.1} s",
        make_printable(&arguments.to.display().to_string()),
        manifest.generation,
        size::show_count(manifest.live_documents(), "document", "documents"),
        size::show_bytes(total_bytes(&manifest)),
        start.elapsed().as_secs_f64()
    )
    .map_err(output_error)
}
