//! The engines that are compared.

use clap::ValueEnum;

/// An engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// This project
    Tierdex,
    /// The crate tantivy
    Tantivy,
    /// Apache Lucene
    Lucene,
    /// PISA by its Python binding
    Pisa,
    /// The crate seekstorm
    Seekstorm,
}

impl Kind {
    /// The name in flags and reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Tierdex => "tierdex",
            Kind::Tantivy => "tantivy",
            Kind::Lucene => "lucene",
            Kind::Pisa => "pisa",
            Kind::Seekstorm => "seekstorm",
        }
    }
}
