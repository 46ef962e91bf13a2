//! Statistics are compared with a model: a map from fields and terms.

use super::*;
use proptest::prelude::*;

type Model = BTreeMap<(usize, Vec<u8>), TermDeletes>;

/// Terms of a few letters in two fields, so that prefixes are shared.
fn any_model() -> impl Strategy<Value = Model> {
    let term = prop::collection::vec(b'a'..b'd', 1..6);
    let deletes = (1u32..5, 0u64..4)
        .prop_map(|(documents, more)| TermDeletes { documents, occurrences: u64::from(documents) + more });
    prop::collection::btree_map((0usize..2, term), deletes, 0..120)
}

fn build(model: &Model) -> DeletedStatistics {
    let mut builder = DeletedStatisticsBuilder::new(2);
    for field in 0..2 {
        (0..5).for_each(|_| builder.add_document(field, 100));
    }
    model.iter().for_each(|((field, term), deletes)| builder.add_term(*field, term, *deletes));
    builder.finish().unwrap()
}

fn read(bytes: &[u8]) -> Result<DeletedStatistics> {
    DeletedStatistics::read(&mut ByteReader::new("statistics", 0, bytes), &[9, 9])
}

fn terms_of(statistics: &DeletedStatistics) -> Model {
    let mut terms = Model::new();
    let added = statistics.for_each(|field, term, deletes| {
        terms.insert((field, term.to_vec()), deletes);
        Ok(())
    });
    added.unwrap();
    terms
}

proptest! {
    #[test]
    fn statistics_are_those_of_a_model(model in any_model(), other in any_model()) {
        let built = build(&model);
        prop_assert_eq!(&terms_of(&built), &model);
        let mut bytes = Vec::new();
        built.write(&mut bytes);
        let read = read(&bytes).unwrap();
        prop_assert_eq!(&terms_of(&read), &model);
        prop_assert_eq!(read.field(1), FieldDeletes { documents: 5, tokens: 500 });
        for field in 0..2 {
            let mut cursor = read.cursor(field);
            let terms = model.keys().chain(other.keys()).map(|(_, term)| term);
            for term in terms.collect::<std::collections::BTreeSet<_>>() {
                let expected = model.get(&(field, term.clone())).copied().unwrap_or_default();
                prop_assert_eq!(cursor.seek(term), expected);
                prop_assert_eq!(cursor.seek(term), expected, "again");
                prop_assert_eq!(read.cursor(field).seek(term), expected, "directly");
                prop_assert_eq!(read.find(field, term), expected);
            }
        }
        let mut sum = model.clone();
        other.iter().for_each(|(key, deletes)| sum.entry(key.clone()).or_default().add(*deletes));
        let merged = DeletedStatistics::merge(&[&built, &build(&other)]).unwrap();
        prop_assert_eq!(terms_of(&merged), sum);
        prop_assert_eq!(merged.field(0), FieldDeletes { documents: 10, tokens: 1000 });
        let without = DeletedStatistics::without_terms(vec![FieldDeletes::default()]);
        prop_assert!(!DeletedStatistics::merge(&[&built, &without]).unwrap().are_terms_known());
    }

    #[test]
    fn damaged_statistics_are_an_error_or_in_order(
        model in any_model(), at in 0usize..400, value: u8, cut in 0usize..400,
    ) {
        let mut bytes = Vec::new();
        build(&model).write(&mut bytes);
        prop_assert!(cut >= bytes.len() || read(&bytes[..cut]).is_err());
        let len = bytes.len();
        bytes[at % len] = value;
        if let Ok(read) = read(&bytes) {
            prop_assert!(terms_of(&read).values().all(|deletes| deletes.documents > 0));
        }
    }
}
