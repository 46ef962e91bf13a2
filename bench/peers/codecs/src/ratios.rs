//! The tables that compare this project's codecs with those of other crates.

use tierdex::codec::Kernel;
use tierdex_bench::Table;
use tierdex_bench::codecs::{CodecRow, CodecRows, ReportSection, ValueKind};

/// A row of a table: a figure of one of this project's codecs divided by that of another codec.
struct Ratio {
    ours: &'static str,
    figure: Figure,
    theirs: &'static str,
    /// Whether the other is our own by the scalar kernel.
    scalar: bool,
}

/// What is compared.
#[derive(Clone, Copy)]
enum Figure {
    L1,
    /// L1 on the length class where the ratio is smallest.
    L1Worst,
    Encode,
    Bits,
}

const IDS: &[Ratio] = &[
    Ratio::new("pfor256-delta", Figure::L1, "bitpacking-8x-sorted"),
    Ratio::new("bp256-delta", Figure::L1, "bitpacking-8x-sorted"),
    Ratio::new("streamvbyte-delta", Figure::L1, "streamvbyte64-delta"),
    Ratio::scalar("vbyte-delta", Figure::L1),
    Ratio::scalar("vbyte-delta", Figure::L1Worst),
    Ratio::new("pfor256-delta", Figure::Encode, "fastpfor-simd256-delta"),
    Ratio::new("pfor256-delta", Figure::Bits, "bitpacking-8x-sorted"),
];

const FREQUENCIES: &[Ratio] = &[
    Ratio::new("pfor256", Figure::L1, "memcpy"),
    Ratio::new("pfor256", Figure::L1, "bitpacking-8x"),
    Ratio::new("streamvbyte", Figure::L1, "streamvbyte64"),
    Ratio::scalar("vbyte", Figure::L1),
    Ratio::new("pfor256", Figure::Encode, "fastpfor-simd256"),
    Ratio::new("pfor256", Figure::Bits, "bitpacking-8x"),
];

/// Datasets whose sums are also compared together.
const GENERATED: [&str; 2] = ["uniform", "clustered"];

/// The text of the report about the peers.
const ABOUT: &str = "A figure of the codec on the left divided by the same figure of the codec on the right. Speeds: more \
    than 1 is faster; bits: less than 1 is smaller. The worst ratio is followed by its K.\n\n\
    - `bitpacking`: blocks of 128 (4x) or 256 (8x), the width in a byte before each; `sorted` packs differences, \
    `strict` differences less one. The rest of a list is written by this project's scalar `vbyte-delta` or `vbyte`.\n\
    - `fastpfor`: pages of 65,536 values, as the crate cuts them, so \"L1\" is a buffer of 256 KiB; differences before \
    and sums behind by plain loops. These are its Rust codecs, `simd256` by its AVX2 loops: its C++ ones download \
    parts of their build.\n\
    - `streamvbyte64`: blocks of 256, `Coder1234`; one to three values behind the last group of four by this \
    project's scalar codecs.\n\n\
    All is compiled with AVX2, which two of the peers need for their vector loops; this project's scalar kernel may be \
    faster for it than in `tierdex-bench codecs`.";

const SCALAR: &str = "scalar";

/// A table for ids and one for frequencies, a row a ratio and kernel, a column a dataset. The scalar kernel
/// has no rows if there are others.
pub fn sections(rows: &CodecRows, kernels: &[Kernel]) -> Vec<ReportSection> {
    let mut names: Vec<&str> = kernels.iter().map(|kernel| kernel.name()).collect();
    if names.len() > 1 {
        names.retain(|name| *name != SCALAR);
    }
    let section = |title: &str, kind, ratios| ReportSection {
        title: title.to_string(),
        about: String::new(),
        table: table(rows, &columns(rows, kind), ratios, &names),
    };
    let mut sections = vec![
        section("Ratios to peers: ids", ValueKind::Ids, IDS),
        section("Ratios to peers: frequencies", ValueKind::Frequencies, FREQUENCIES),
    ];
    sections.retain(|section| !section.table.is_empty());
    if let Some(first) = sections.first_mut() {
        first.about = ABOUT.to_string();
    }
    sections
}

/// Datasets that are compared, each alone and the generated ones together.
fn columns(rows: &CodecRows, kind: ValueKind) -> Vec<Vec<&'static str>> {
    let of_kind = rows.datasets().into_iter().filter(|dataset| dataset.1 == kind);
    let mut columns: Vec<Vec<&str>> = of_kind.map(|dataset| vec![dataset.0]).collect();
    let generated = GENERATED.iter().all(|dataset| columns.contains(&vec![*dataset]));
    if generated {
        columns.insert(GENERATED.len(), GENERATED.to_vec());
    }
    columns
}

fn table(rows: &CodecRows, columns: &[Vec<&str>], ratios: &[Ratio], kernels: &[&str]) -> Table {
    let names: Vec<String> = columns.iter().map(|datasets| datasets.join("+")).collect();
    let heading =
        ["codec", "kernel", "figure", "against"].into_iter().chain(names.iter().map(String::as_str));
    let mut table = Table::new(4, &heading.collect::<Vec<_>>());
    for ratio in ratios {
        for kernel in kernels {
            let values: Vec<Option<String>> =
                columns.iter().map(|datasets| ratio.value(rows, datasets, kernel)).collect();
            if values.iter().any(Option::is_some) {
                let head = [ratio.ours, kernel, ratio.figure.name(), &ratio.against()].map(str::to_string);
                let cells = values.into_iter().map(|value| value.unwrap_or_else(|| "-".to_string()));
                table.row(head.into_iter().chain(cells).collect());
            }
        }
    }
    table
}

impl Ratio {
    const fn new(ours: &'static str, figure: Figure, theirs: &'static str) -> Ratio {
        Ratio { ours, figure, theirs, scalar: false }
    }

    const fn scalar(ours: &'static str, figure: Figure) -> Ratio {
        Ratio { ours, figure, theirs: ours, scalar: true }
    }

    fn against(&self) -> String {
        if self.scalar { format!("{} {SCALAR}", self.theirs) } else { self.theirs.to_string() }
    }

    /// Nothing if one of the two did not run.
    fn value(&self, rows: &CodecRows, datasets: &[&str], kernel: &str) -> Option<String> {
        let base = self.base_kernel(rows, datasets[0])?;
        if let Figure::L1Worst = self.figure {
            let (k, ratio) = self.worst(rows, datasets, (kernel, &base))?;
            return Some(format!("{ratio:.2} (K {k})"));
        }
        let ours = rows.total(datasets, self.ours, kernel)?;
        let theirs = rows.total(datasets, self.theirs, &base)?;
        Some(format!("{:.2}", self.figure.of(&ours) / self.figure.of(&theirs)))
    }

    /// The name that the run gave to the loops of the other.
    fn base_kernel(&self, rows: &CodecRows, dataset: &str) -> Option<String> {
        if self.scalar {
            return Some(SCALAR.to_string());
        }
        let totals = rows.totals(dataset);
        totals.into_iter().find(|row| row.codec == self.theirs).map(|row| row.kernel)
    }

    fn worst(&self, rows: &CodecRows, datasets: &[&str], (kernel, base): (&str, &str)) -> Option<(u32, f64)> {
        let classes =
            datasets.iter().flat_map(|dataset| rows.classes(dataset).into_iter().map(move |k| (dataset, k)));
        let ratios = classes.filter_map(|(dataset, k)| {
            let ours = rows.class(dataset, k, self.ours, kernel)?;
            let theirs = rows.class(dataset, k, self.theirs, base)?;
            Some((k, self.figure.of(ours) / self.figure.of(theirs)))
        });
        ratios.min_by(|a, b| a.1.total_cmp(&b.1))
    }
}

impl Figure {
    fn name(self) -> &'static str {
        match self {
            Figure::L1 => "L1",
            Figure::L1Worst => "L1, worst K",
            Figure::Encode => "encode",
            Figure::Bits => "bits",
        }
    }

    fn of(self, row: &CodecRow) -> f64 {
        match self {
            Figure::L1 | Figure::L1Worst => row.decode_l1(),
            Figure::Encode => row.encode(),
            Figure::Bits => row.bits(),
        }
    }
}
