//! Indexes that are written from posting lists instead of text.

use proptest::prelude::*;
use std::{collections::BTreeMap, sync::Arc};
use tierdex::internal::index::{EncodedPostings, ListsBuilder, PIECE_POSTINGS, check_on};
use tierdex::io::{Disk, MemDisk};
use tierdex::schema::{Field, NormKind, Schema, Stored};
use tierdex::{Error, Index, IndexWriter, Merge, OpenMode, Result, StopSignal, WriterOptions};

/// A term with documents and frequencies, valid or invalid.
type TermPostings<'a> = (&'a str, &'a [u32], &'a [u32]);

/// Documents and frequencies of each term.
type PostingLists = BTreeMap<String, (Vec<u32>, Vec<u32>)>;

fn schema(norms: NormKind) -> Schema {
    let field = Field { norms, ..Field::new("text", &["text"]) };
    Schema { stored: Stored::Nothing, ..Schema::of(vec![field]) }
}

fn open_new_writer(disk: &MemDisk, schema: Schema, stop: &StopSignal) -> IndexWriter {
    let options = WriterOptions { stop: stop.clone(), ..WriterOptions::default() };
    IndexWriter::open(Arc::new(disk.clone()), schema, OpenMode::New, options).unwrap()
}

fn file_contents(disk: &MemDisk) -> BTreeMap<String, Vec<u8>> {
    let names = disk.list().unwrap().into_iter();
    names.map(|name| (name.clone(), disk.bytes(&name).unwrap())).collect()
}

fn lengths_and_lists(texts: &[Vec<u8>]) -> (Vec<u32>, PostingLists) {
    let mut lists = PostingLists::new();
    for (document, words) in (0..).zip(texts) {
        for word in words {
            let (documents, frequencies) = lists.entry(format!("w{word}")).or_default();
            if documents.last() == Some(&document) {
                *frequencies.last_mut().unwrap() += 1;
            } else {
                documents.push(document);
                frequencies.push(1);
            }
        }
    }
    (texts.iter().map(|words| words.len() as u32).collect(), lists)
}

/// Adds all lists in pieces of `piece` postings.
fn add_lists(lists: &PostingLists, builder: &mut ListsBuilder<'_, '_>, piece: usize) -> Result<()> {
    for (term, (documents, frequencies)) in lists {
        builder.term(term, |list| {
            let mut pieces = documents.chunks(piece).zip(frequencies.chunks(piece));
            pieces.try_for_each(|(documents, frequencies)| list.extend(documents, frequencies))
        })?;
    }
    Ok(())
}

/// Adds all lists in pieces that are encoded before; of the list of the term `mixed`, the last piece is not.
fn add_encoded_lists(lists: &PostingLists, builder: &mut ListsBuilder<'_, '_>, mixed: &str) -> Result<()> {
    let (mut encoder, mut encoded) = (builder.encoder(), EncodedPostings::default());
    for (term, (documents, frequencies)) in lists {
        builder.term(term, |list| {
            let mut before = None;
            for (documents, frequencies) in
                documents.chunks(PIECE_POSTINGS).zip(frequencies.chunks(PIECE_POSTINGS))
            {
                if term == mixed && documents.len() < PIECE_POSTINGS {
                    list.extend(documents, frequencies)?;
                } else {
                    encoder.encode(before, documents, frequencies, &mut encoded)?;
                    assert_eq!(encoded.postings() as usize, documents.len());
                    list.append(&encoded)?;
                }
                before = documents.last().copied();
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn index_from_text(texts: &[Vec<u8>], norms: NormKind) -> MemDisk {
    let disk = MemDisk::new();
    let mut writer = open_new_writer(&disk, schema(norms), &StopSignal::default());
    for (number, words) in texts.iter().enumerate() {
        let words: Vec<String> = words.iter().map(|word| format!("w{word}")).collect();
        writer.add(&number.to_string(), [("text", &words.join(" "))]).unwrap();
    }
    writer.commit(Merge::One).unwrap();
    disk
}

fn index_from_lists(texts: &[Vec<u8>], norms: NormKind, piece: usize) -> MemDisk {
    let disk = MemDisk::new();
    let (lengths, lists) = lengths_and_lists(texts);
    let mut writer = open_new_writer(&disk, schema(norms), &StopSignal::default());
    let number = |document: u32, id: &mut String| id.push_str(&document.to_string());
    writer.import(lengths, number, |builder| add_lists(&lists, builder, piece)).unwrap();
    writer.commit(Merge::None).unwrap();
    disk
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn lists_and_text_give_the_same_bytes(
        texts in prop::collection::vec(prop::collection::vec(0u8..6, 0..8), 1..900),
        piece in prop_oneof![1usize..20, 200usize..600],
        exact in any::<bool>(),
    ) {
        let norms = if exact { NormKind::Exact } else { NormKind::Byte };
        prop_assert_eq!(file_contents(&index_from_lists(&texts, norms, piece)), file_contents(&index_from_text(&texts, norms)));
    }
}

#[test]
fn separately_encoded_pieces_give_the_same_bytes() {
    let documents = 3 * PIECE_POSTINGS as u32 + 77;
    let mut lists = PostingLists::new();
    let mut lengths = vec![0; documents as usize];
    for (number, (step, postings)) in
        [(1, documents), (2, 9000), (3, 8193), (1, 8192), (2, 8191), (70, 257), (1, 256), (9, 255), (5, 1)]
            .into_iter()
            .enumerate()
    {
        let list: Vec<u32> = (number as u32..documents).step_by(step).take(postings as usize).collect();
        let frequencies: Vec<u32> = list.iter().map(|document| 1 + document * document % 7 / 3).collect();
        for (document, frequency) in list.iter().zip(&frequencies) {
            lengths[*document as usize] += frequency;
        }
        lists.insert(format!("w{number}"), (list, frequencies));
    }
    let written = |give: &dyn Fn(&mut ListsBuilder<'_, '_>) -> Result<()>| {
        let disk = MemDisk::new();
        let mut writer = open_new_writer(&disk, schema(NormKind::Byte), &StopSignal::default());
        writer.import(lengths.clone(), |_, id| id.push('x'), |builder| give(builder)).unwrap();
        writer.commit(Merge::None).unwrap();
        assert!(check_on(&disk).unwrap().problems.is_empty());
        file_contents(&disk)
    };
    let plain = written(&|builder| add_lists(&lists, builder, 1000));
    for mixed in ["", "w0", "w1", "w2", "w8"] {
        assert!(written(&|builder| add_encoded_lists(&lists, builder, mixed)) == plain, "{mixed}");
    }
}

#[test]
fn pieces_out_of_order_are_rejected() {
    let all: Vec<u32> = (0..20_000).collect();
    let ones = vec![1; all.len()];
    // Each piece is a range of documents, with the document that is said to be the previous one.
    let attempt = |pieces: &[(std::ops::Range<usize>, Option<u32>)]| {
        let disk = MemDisk::new();
        let mut writer = open_new_writer(&disk, schema(NormKind::Byte), &StopSignal::default());
        let number = |_, id: &mut String| id.push('x');
        let imported = writer.import(ones.clone(), number, |builder| {
            let (mut encoder, mut encoded) = (builder.encoder(), EncodedPostings::default());
            builder.term("a", |list| {
                pieces.iter().try_for_each(|(range, before)| {
                    encoder.encode(*before, &all[range.clone()], &ones[range.clone()], &mut encoded)?;
                    list.append(&encoded)
                })
            })
        });
        imported.map_err(|error| error.to_string())
    };
    let whole = [(0..8192, None), (8192..16_384, Some(8191)), (16_384..20_000, Some(16_383))];
    assert_eq!(attempt(&whole), Ok(()));
    let [first, second, last] = whole;
    let follow = "pieces of term `a` do not follow one another";
    for (pieces, words) in [
        (vec![second.clone()], follow),
        (vec![first.clone(), last.clone()], follow),
        (vec![first.clone(), first.clone()], follow),
        (vec![(0..8191, None), (8191..9000, Some(8190))], follow),
        (vec![(0..200, None), (200..300, Some(199))], follow),
        (vec![(0..8193, None)], "increasing documents"),
        (vec![(0..0, None)], "increasing documents"),
        (vec![first, (8192..9000, Some(8192))], "increasing documents"),
    ] {
        let error = attempt(&pieces).unwrap_err();
        assert!(error.contains(words), "{pieces:?}: {error}");
    }
}

#[test]
fn imported_documents_follow_those_that_were_added() {
    let disk = MemDisk::new();
    let mut writer = open_new_writer(&disk, schema(NormKind::Byte), &StopSignal::default());
    writer.add("text", [("text", "cat dog")]).unwrap();
    let lengths = vec![3, 1];
    let number = |document: u32, id: &mut String| id.push_str(&format!("list-{document}"));
    let lists: PostingLists =
        [("cat".into(), (vec![0, 1], vec![2, 1])), ("fish".into(), (vec![0], vec![1]))].into();
    writer.import(lengths, number, |builder| add_lists(&lists, builder, 1)).unwrap();
    writer.add("last", [("text", "fish")]).unwrap();
    assert_eq!(writer.documents(), 4);
    writer.commit(Merge::One).unwrap();
    assert!(check_on(&disk).unwrap().problems.is_empty());
    let index = Index::open_on(Arc::new(disk)).unwrap();
    let ids: Vec<String> = (0..4).map(|document| index.searcher().id(document).unwrap()).collect();
    assert_eq!(ids, ["text", "list-0", "list-1", "last"]);
}

/// The error of an import of documents of these lengths, after which the writer must leave no files.
fn import_error(
    schema: Schema,
    lengths: &[u32],
    body: impl FnOnce(&mut ListsBuilder<'_, '_>) -> Result<()>,
) -> Error {
    let disk = MemDisk::new();
    let mut writer = open_new_writer(&disk, schema, &StopSignal::default());
    let error = writer.import(lengths.to_vec(), |_, id| id.push('x'), body).unwrap_err();
    assert!(writer.commit(Merge::None).is_err(), "the writer has stopped");
    drop(writer);
    assert!(file_contents(&disk).is_empty());
    assert_eq!(error.to_string().lines().count(), 1);
    error
}

#[test]
fn invalid_lists_are_rejected() {
    let lists = |of: &[TermPostings<'_>]| {
        import_error(schema(NormKind::Byte), &[1, 2], |builder| {
            of.iter().try_for_each(|(term, documents, frequencies)| {
                builder.term(term, |list| list.extend(documents, frequencies))
            })
        })
    };
    let long = "x".repeat(256);
    let cases: [(&[TermPostings<'_>], &str); 12] = [
        (&[("", &[0], &[1])], "not greater"),
        (&[(&long, &[0], &[1])], "longer than 255 bytes"),
        (&[("b", &[0], &[1]), ("a", &[1], &[2])], "`a` is longer than 255 bytes, or not greater"),
        (&[("a", &[0], &[1]), ("a", &[1], &[2])], "not greater"),
        (&[("a", &[], &[])], "`a` has no postings"),
        (&[("a", &[], &[1])], "increasing documents"),
        (&[("a", &[0, 1], &[1])], "increasing documents"),
        (&[("a", &[1, 0], &[1, 2])], "increasing documents"),
        (&[("a", &[1, 1], &[1, 2])], "increasing documents"),
        (&[("a", &[0, 2], &[1, 2])], "increasing documents"),
        (&[("a", &[0, 1], &[1, 0])], "frequency of at least 1"),
        (&[("a", &[0, 1], &[1, 1])], "the lists have 2 tokens; the lengths of the documents sum up to 3"),
    ];
    for (case, words) in cases {
        let error = lists(case);
        assert!(matches!(&error, Error::Usage(message) if message.contains(words)), "{case:?}: {error}");
    }
    let twice = import_error(schema(NormKind::Byte), &[1, 2], |builder| {
        builder.term("a", |list| list.extend(&[0, 1], &[1, 2]).and_then(|()| list.extend(&[1], &[2])))
    });
    assert!(twice.to_string().contains("increasing documents"));
}

/// Such an index could not be read: readers reject a term with more postings than documents have the field.
#[test]
fn a_list_of_documents_without_tokens_is_rejected() {
    let error = import_error(schema(NormKind::Byte), &[3, 0], |builder| {
        builder.term("a", |list| list.extend(&[0, 1], &[1, 2]))
    });
    let why = "term `a` is in 2 documents; 1 have a length above 0";
    assert!(matches!(&error, Error::Usage(message) if message.contains(why)), "{error}");
}

/// If such a list were accepted, every query of the term would fail, long after the commit.
#[test]
fn an_impossible_frequency_is_rejected() {
    let most = 1 << 26;
    let error = import_error(schema(NormKind::Byte), &[most, most], |builder| {
        builder.term("a", |list| list.extend(&[0, 1], &[most - 1, most + 1]))
    });
    assert!(matches!(error, Error::TooLarge(_)));
    let why = "term `a` occurs 67108865 times in document 1; a document has at most 67108864 tokens";
    assert!(error.to_string().contains(why), "{error}");
    let encoded = import_error(schema(NormKind::Byte), &[most, most], |builder| {
        builder.encoder().encode(None, &[0, 1], &[most - 1, most + 1], &mut EncodedPostings::default())
    });
    assert!(matches!(encoded, Error::TooLarge(_)), "{encoded}");
    assert!(encoded.to_string().contains("a term occurs 67108865 times"), "{encoded}");
}

#[test]
fn unsupported_imports_are_rejected() {
    let one = |builder: &mut ListsBuilder<'_, '_>| builder.term("a", |list| list.extend(&[0], &[1]));
    let mut positions = schema(NormKind::Byte);
    positions.fields[0].positions = true;
    let stored = Schema { stored: Stored::Members, ..schema(NormKind::Byte) };
    let mut fields = schema(NormKind::Byte);
    fields.fields.push(Field::new("title", &["title"]));
    for (schema, words) in [(positions, "without positions"), (stored, "stored"), (fields, "one field")] {
        assert!(import_error(schema, &[1], one).to_string().contains(words));
    }
    let empty = import_error(schema(NormKind::Byte), &[], |_| Ok(()));
    assert!(empty.to_string().contains("at least one document"));
    assert!(matches!(import_error(schema(NormKind::Byte), &[u32::MAX], one), Error::TooLarge(_)));
}

#[test]
fn a_stop_and_a_full_disk_leave_no_files() {
    let texts: Vec<Vec<u8>> = (0..2000).map(|at| vec![at as u8, (at / 7) as u8]).collect();
    let (lengths, lists) = lengths_and_lists(&texts);
    let attempt = |disk: &MemDisk, stop: &StopSignal, raise_at: usize| {
        let mut writer = open_new_writer(disk, schema(NormKind::Byte), stop);
        let mut terms = lists.iter().enumerate();
        let no_ids = |_, _: &mut String| ();
        let imported = writer.import(lengths.clone(), no_ids, |builder| {
            terms.try_for_each(|(number, (term, (documents, frequencies)))| {
                if number == raise_at {
                    stop.raise();
                }
                builder.term(term, |list| list.extend(documents, frequencies))
            })
        });
        imported.and_then(|()| writer.commit(Merge::None))
    };
    let disk = MemDisk::new();
    assert!(matches!(attempt(&disk, &StopSignal::default(), 100), Err(Error::Interrupted)));
    assert!(file_contents(&disk).is_empty() && Index::open_on(Arc::new(disk)).is_err());
    let whole = MemDisk::new();
    attempt(&whole, &StopSignal::default(), usize::MAX).unwrap();
    let bytes: usize = file_contents(&whole).values().map(Vec::len).sum();
    for capacity in (0..bytes).step_by(bytes / 20) {
        let disk = MemDisk::with_capacity(capacity as u64);
        let error = attempt(&disk, &StopSignal::default(), usize::MAX).unwrap_err();
        assert!(error.to_string().contains("full"), "{error}");
        assert!(Index::open_on(Arc::new(disk)).err().unwrap().to_string().contains("holds no tierdex index"));
    }
}
