//! `tierdex-bench cell` for the experiment `codecs`, with codecs of other crates beside those of this
//! project, on the same lists in the same run. The driver starts it in place of `tierdex-bench`.
//!
//! Each peer has a file of its own that says how it is used. Short blocks that a peer cannot encode are
//! encoded by this project's scalar `vbyte-delta` or `vbyte`.

mod bitpackers;
mod fastpfors;
mod plain;
mod streamvbytes;

use std::{io::Read, io::Write, io::stdin, io::stdout, process::ExitCode};
use tierdex::StopSignal;
use tierdex_bench::codecs::Peer;
use tierdex_bench::request::{Members, answer_codecs, answer_request, read_request};
use tierdex_bench::{Error, Result};

fn main() -> ExitCode {
    match answer() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(if matches!(error, Error::Usage(_)) { 2 } else { 1 })
        }
    }
}

/// Answers the request on standard input.
fn answer() -> Result<()> {
    if std::env::args().nth(1).is_none_or(|command| command != "cell") {
        let why = "the only command is `cell`, which reads JSON from standard input (see README.md)";
        return Err(Error::Usage(why.to_string()));
    }
    let (mut text, stop) = (String::new(), StopSignal::default());
    stdin().read_to_string(&mut text).map_err(Error::failed("cannot read the cell"))?;
    let mut members: Members = serde_json::from_str(&text).unwrap_or_default();
    if members.get("experiment").is_none_or(|name| name != "codecs") {
        return answer_request(read_request(&mut text.as_bytes())?.as_ref(), &stop, &mut stdout());
    }
    members.remove("experiment");
    let rows = answer_codecs(members, peers(), &stop)?;
    writeln!(stdout(), "{rows}").map_err(Error::Output)
}

fn peers() -> Vec<Box<dyn Peer>> {
    let mut peers = bitpackers::all();
    peers.extend(fastpfors::all());
    peers.extend(streamvbytes::all());
    peers
}
