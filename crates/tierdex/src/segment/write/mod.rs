//! Writers of the files of a segment. The reader of each is the module of the same name in `read/`.

mod column;
mod deletes;
mod encoded;
mod field;
mod file;
mod ids;
mod keys;
mod lists;
mod postings;
mod stored;
mod superblock;
mod terms;

pub use column::{ColumnBuffer, ColumnTarget, DocumentValuesBody, write_column};
pub use deletes::{write_deleted_statistics, write_deletes};
pub use encoded::{EncodedLists, LISTS_SENT_BYTES, ListsSender};
pub(crate) use field::default_share;
pub use field::{FieldTarget, FieldWriter, write_lengths, write_norms};
pub use ids::IdsWriter;
pub use keys::{KeysWriter, write_keys};
pub use postings::{PostingsWriter, TermsEncoder};
pub use stored::{StoredBlocks, StoredWriter};
pub use superblock::{Superblock, SuperblockEncoder};
pub use terms::ListCounts;
