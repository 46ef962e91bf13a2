//! The engines: how each is built, how it indexes, how it serves. Each peer is one program with three
//! commands, `version`, `index TOKENS DIR --memory BYTES` and `serve DIR`; only tierdex has words of its
//! own. A [`Variant`] is a way to index and to ask, which not all of them have.

mod build;
mod contender;
pub mod kind;
mod program;
mod variant;

pub use build::JAVA_SMALL;
pub use contender::Contender;
pub use kind::Kind;
pub use program::{Advice, Engine};
pub use variant::Variant;

use crate::{flags::Flags, tools::say};
use clap::ValueEnum;
use tierdex_bench::{Error, Result};

/// Builds the engines that are wanted. Gives those that can run, and for each other one line that says why
/// not.
///
/// # Errors
/// If tierdex was wanted and cannot be built, or if no engine is left.
pub fn prepare(flags: &Flags) -> Result<(Vec<Engine>, Vec<String>)> {
    let (mut engines, mut left_out) = (Vec::new(), Vec::new());
    for &kind in Kind::value_variants().iter().filter(|&&kind| flags.wants(kind)) {
        say(&format!("building {}", kind.name()));
        let built = match kind {
            Kind::Tierdex => build::tierdex(),
            Kind::Tantivy => build::tantivy(),
            Kind::Lucene => build::lucene(),
            Kind::Pisa => build::pisa(&flags.work),
            Kind::Seekstorm => build::seekstorm(),
        };
        match built {
            Ok(engine) => engines.push(engine),
            Err(why) if kind == Kind::Tierdex => return Err(Error::Failed(why)),
            Err(why) => {
                let line = format!("{} is left out: {why}", kind.name());
                say(&line);
                left_out.push(line);
            }
        }
    }
    if engines.is_empty() {
        return Err(Error::Failed("no engine is left to measure".to_string()));
    }
    Ok((engines, left_out))
}
