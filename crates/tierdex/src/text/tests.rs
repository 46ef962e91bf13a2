//! Tests of the analysis chain, over ordinary and adversarial text.

use super::*;
use crate::schema::Language;
use proptest::prelude::*;
use std::hash::Hasher;

fn terms_of(analysis: &Analysis, text: &str) -> String {
    Analyzer::new(analysis).terms(text).join(" ")
}

#[test]
fn alphanumeric_runs_are_lower_cased() {
    let plain = Analysis { tokenizer: Tokenizer::Alphanumeric, ..Analysis::default() };
    for (text, expected) in [
        ("", ""),
        (" .,!", ""),
        ("One, TWO-three's 4th", "one two three s 4th"),
        ("Ünïcode ÄÖÜ Straße", "ünïcode äöü straße"),
        ("ΟΔΥΣΣΕΥΣ", "οδυσσευς"),
        ("漢字 と kana", "漢字 と kana"),
        ("x²+½", "x² ½"),
        ("a\u{0}b", "a b"),
        ("naïve—café", "naïve café"),
    ] {
        assert_eq!(terms_of(&plain, text), expected, "{text:?}");
    }
}

#[test]
fn long_tokens_are_dropped_but_keep_their_position() {
    let text = format!("a {} b {}", "x".repeat(256), "y".repeat(255));
    let mut seen = Vec::new();
    let mut analyzer = Analyzer::new(&Analysis::default());
    let next = analyzer.analyze(&text, 5, |token| seen.push((token.term.len(), token.position)));
    assert_eq!(seen, [(1, 5), (1, 7), (255, 8)]);
    assert_eq!(next, 9);
    assert_eq!((analyzer.take_too_long(), analyzer.take_too_long()), (1, 0));

    // Length is checked before accent folding; stop words are not counted as too long.
    let folding = Analysis { fold_accents: true, stop_words: vec!["a".into()], ..Analysis::default() };
    let mut analyzer = Analyzer::new(&folding);
    assert_eq!(analyzer.terms(&format!("a {} {} b", "\u{142}".repeat(127), "\u{f0}".repeat(200))).len(), 2);
    assert_eq!(analyzer.take_too_long(), 1);
}

#[test]
fn whitespace_tokens_are_unchanged() {
    let analysis = Analysis { tokenizer: Tokenizer::Whitespace, ..Analysis::default() };
    assert_eq!(terms_of(&analysis, " The don't\t3.14\nÉ "), "The don't 3.14 É");
}

#[test]
fn accents_stop_words_and_stems() {
    let analysis = Analysis {
        fold_accents: true,
        stop_words: ENGLISH_STOP_WORDS.iter().map(|w| w.to_string()).collect(),
        stemmer: Some(Language::English),
        ..Analysis::default()
    };
    assert_eq!(terms_of(&analysis, "The cafés of Łódź were running"), "cafe lodz were run");
    let folding = Analysis { fold_accents: true, ..Analysis::default() };
    assert_eq!(terms_of(&folding, "Ἀθῆναι ёлка かがみ 한국 straße"), "αθηναι елка かが がみ み 한국 strasse");
    assert!(ENGLISH_STOP_WORDS.is_sorted());
}

proptest! {
    /// Offsets are character boundaries inside the text, positions increase, and a second run is equal.
    #[test]
    fn tokens_are_valid_for_any_text(
        text in "\\PC{0,60}|[a-zA-ZéÉßİΣ漢 \u{0}\u{301}]{0,80}",
        fold in any::<bool>(),
        tokenizer in 0usize..3,
        stem in 0usize..=18,
    ) {
        let analysis = Analysis {
            tokenizer: Tokenizer::ALL[tokenizer],
            fold_accents: fold,
            stop_words: vec!["a".into(), "the".into()],
            stemmer: stem.checked_sub(1).map(|i| Language::ALL[i]),
        };
        let analyze = || {
            let mut seen = Vec::new();
            let next = Analyzer::new(&analysis).analyze(&text, 0, |t| {
                seen.push((t.term.to_string(), t.position, t.start, t.end));
            });
            (seen, next)
        };
        let (seen, next) = analyze();
        let mut last: Option<(usize, usize)> = None;
        for (i, (term, position, start, end)) in seen.iter().enumerate() {
            prop_assert!(has_valid_length(term));
            prop_assert!(*position < next && *position as usize >= i);
            // Tokens of text without blanks overlap.
            let overlaps = last.is_some_and(|(last_start, last_end)| last_start < *start && *start < last_end);
            prop_assert!(overlaps || last.is_none_or(|(_, last_end)| last_end <= *start));
            prop_assert!(!overlaps || analysis.tokenizer == Tokenizer::Unicode);
            prop_assert!(start < end);
            prop_assert!(text.get(*start..*end).is_some());
            last = Some((*start, *end));
        }
        prop_assert_eq!(analyze(), (seen, next));
    }
}

/// If this test fails, the same text gives other tokens than before: increase [`ANALYSIS_VERSION`], so that
/// the statistics of documents that are deleted later are not computed by other tokens than were indexed.
#[test]
fn the_tokens_of_this_version_of_the_analysis_are_the_same() {
    let mut digest = siphasher::sip::SipHasher13::new();
    let mut add = |analysis: &Analysis, text: &str| {
        Analyzer::new(analysis).analyze(text, 0, |Token { term, position, .. }| {
            digest.write(term.as_bytes());
            digest.write(&position.to_le_bytes());
        });
    };
    for (tokenizer, fold_accents) in Tokenizer::ALL.into_iter().flat_map(|of| [(of, false), (of, true)]) {
        let unstemmed = Analysis { tokenizer, fold_accents, ..Analysis::default() };
        for stemmer in Language::ALL.iter().copied() {
            let analysis = Analysis { stemmer: Some(stemmer), ..unstemmed.clone() };
            VERSION_TEXTS.iter().for_each(|text| add(&analysis, text));
        }
        // Each character below U+32000 alone and in words, 256 in a text.
        for block in 0..0x320 {
            let characters = (block << 8..(block + 1) << 8).filter_map(char::from_u32);
            let text: String = characters.map(|of| format!("{of} a{of} {of}b c{of}d {of}{of} ")).collect();
            add(&unstemmed, &text);
        }
    }
    assert_eq!((ANALYSIS_VERSION, digest.finish()), (1, 7087761178686036256));
}

const VERSION_TEXTS: [&str; 8] = [
    "The quick brown foxes jumped over the lazy dogs; running, ran, runs: relational conditional organization.",
    "Die Häuser der Mädchen waren größer als die Straßenbahnhaltestelle. L'été, les chevaux nationaux mangeaient.",
    "Los niños corriendo rápidamente; as crianças correndo; i bambini correvano felicemente nelle città.",
    "Пушкин писал стихи о любви, и читатели читали их. Η Ελλάδα είναι όμορφη, τα παιδιά παίζουν.",
    "كتب الطلاب الدروس في المدارس القديمة. שלום לכל הילדים שהלכו לבית הספר. çocukların kitapları, İstanbul'da",
    "漢字とひらがなとカタカナを混ぜた文章。中文分词没有空格。한국어 문장은 띄어쓰기가 있다. ภาษาไทยไม่มีช่องว่าง",
    "हिन्दी में लिखे हुए शब्द। தமிழ் சொற்கள். e\u{301}te\u{301} ﬁne ½ x² don't 3.14 1,000 a_b foo@bar.com",
    "gutters og jenters bøker; talojen ikkunoista; házakban; copiilor; flickornas böcker; drenge; jongens liepen",
];
