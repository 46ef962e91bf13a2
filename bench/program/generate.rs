//! `tierdex-bench generate`: generates an index of any size without text.

use std::{io::Write, io::stdout, sync::Arc, time::Duration, time::Instant};
use tierdex::commit::Manifest;
use tierdex::{IndexWriter, Merge, OpenMode, StopSignal, WriterOptions, io::Disk, limits::MEMORY_MIN};
use tierdex_bench::generate::{Collection, Flags};
use tierdex_cli::cmd::index::{output_disk, thread_count};
use tierdex_cli::failure::{Failure, Outcome, output_error};
use tierdex_cli::{index_job::commit_in_doubt, interrupt, messages::make_printable, progress, size};

pub fn run_generate(flags: &Flags) -> Outcome {
    let start = Instant::now();
    let collection = Collection::new(flags)?;
    let threads = thread_count(None)?;
    let disk = output_disk(&flags.out)?;
    let manifest = write_index(&collection, threads, disk.clone()).inspect_err(|_| disk.remove_created())?;
    print_summary(flags, &manifest, start.elapsed()).map_err(output_error)
}

/// Writes the index and returns the manifest of the commit.
fn write_index(collection: &Collection, threads: usize, disk: Arc<dyn Disk>) -> Outcome<Manifest> {
    let stop = StopSignal::default();
    let _watched = interrupt::raise_on_signal(stop.clone());
    let options = WriterOptions { memory: MEMORY_MIN, stop, ..WriterOptions::default() };
    let mut writer = IndexWriter::open(disk.clone(), collection.schema(), OpenMode::New, options)?;
    let bar = progress::new_progress_bar(2 * collection.postings());
    let written = collection.write(&mut writer, threads, &mut |done| {
        bar.set_message(if done <= collection.postings() { "norms" } else { "posting lists" });
        bar.set_position(done);
    });
    let committed = written.and_then(|()| {
        bar.set_message("commit");
        writer.commit(Merge::Keep)
    });
    bar.finish_and_clear();
    if let Err(error) = committed {
        return Err(if writer.in_doubt() { commit_in_doubt(&error) } else { error.into() });
    }
    let manifest = Manifest::read_newest(disk.as_ref())?;
    manifest.ok_or_else(|| Failure::Failed(format!("{} has no index after the commit", disk.describe())))
}

/// Prints a summary and the size of each file.
fn print_summary(flags: &Flags, manifest: &Manifest, elapsed: Duration) -> std::io::Result<()> {
    let stats = || manifest.segments.iter().flat_map(|segment| &segment.fields);
    let seconds = elapsed.as_secs_f64().max(1e-9);
    let mut out = stdout().lock();
    writeln!(
        out,
        "{}, {}, {}, {} in {seconds:.1} s; {} holds",
        size::show_count(manifest.documents(), "document", "documents"),
        size::show_count(stats().map(|field| field.terms).sum(), "term", "terms"),
        size::show_count(stats().map(|field| field.postings).sum(), "posting", "postings"),
        size::show_count(stats().map(|field| field.tokens).sum(), "token", "tokens"),
        make_printable(&flags.out.display().to_string())
    )?;
    for file in manifest.segments.iter().flat_map(|segment| &segment.files) {
        writeln!(out, "  {:<6} {:>15} bytes", file.kind.name(), size::show_number(file.seal.len))?;
    }
    Ok(())
}
