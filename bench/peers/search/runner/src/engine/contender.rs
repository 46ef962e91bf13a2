//! Engines in a variant of the index and the queries.

use super::{kind::Kind, program::Engine, variant::Variant};
use crate::flags::Flags;
use std::path::PathBuf;

/// An engine in a variant.
#[derive(Clone)]
pub struct Contender {
    /// The engine.
    pub engine: Engine,
    /// The variant.
    pub variant: Variant,
    /// What tables call it: the engine's name, and what differs from the variant of all.
    pub name: String,
}

impl Contender {
    /// All that take part, for sets that need positions or for the others; and a line for each engine that
    /// does not.
    pub fn all(flags: &Flags, engines: &[Engine], positions: bool) -> (Vec<Contender>, Vec<String>) {
        let variant = Variant::of(flags, positions);
        let (mut contenders, mut left_out) = (Vec::new(), Vec::new());
        for engine in engines {
            let name = engine.kind.name();
            if let Some(why) = engine.kind.lacks(&variant) {
                let sets = if positions { "phrases are" } else { "these variants are" };
                left_out.push(format!("{name} is left out where {sets} measured: {why}"));
                continue;
            }
            contenders.push(Contender { engine: engine.clone(), variant, name: name.to_string() });
            if engine.kind == Kind::Tierdex && flags.own_variants {
                let own = variant.own().map(|(tail, variant)| Contender {
                    engine: engine.clone(),
                    variant,
                    name: format!("{name} {tail}"),
                });
                contenders.extend(own);
            }
        }
        (contenders, left_out)
    }

    /// Directory of its index.
    pub fn dir(&self, flags: &Flags) -> PathBuf {
        self.engine.index_dir(flags, &self.variant)
    }
}
