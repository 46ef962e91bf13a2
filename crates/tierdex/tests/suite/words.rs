//! The words of the tokenizer `unicode`: the word boundary test of Unicode, texts in many scripts in both
//! normalization forms, and searches in text without blanks.

use crate::support::{AnswerOptions, answer_text, corpus::TestDocument, index_in_memory, matching_documents};
use proptest::prelude::*;
use std::{collections::BTreeSet, process::Command};
use tierdex::schema::{Analysis, Language, Schema, Tokenizer};
use tierdex::{Index, Query, analysis::Analyzer};
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

/// The byte ranges of the words of a text, and of its runs of text without blanks.
fn word_ranges(text: &str) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    Analyzer::new(&Analysis::default()).analyze(text, 0, |token| match (token.run, ranges.last_mut()) {
        (Some(part), Some(last)) if !part.is_first => last.1 = token.end,
        _ => ranges.push((token.start, token.end)),
    });
    ranges
}

fn terms_of(text: &str) -> String {
    Analyzer::new(&Analysis::default()).terms(text).join(" ")
}

/// The byte ranges of words that the tokenizer should find in a segment of UAX 29 that starts at `start`. A
/// segment is divided at characters that rules WB6, 7, 11, 12, 13a and 13b do not divide at, except quotation
/// marks after Hebrew letters.
fn words_of_segment(segment: &str, start: usize) -> Vec<(usize, usize)> {
    let is_mark = |c: char| format!(" {c}").split_word_bounds().count() == 1 && c != ' ';
    let is_hebrew = |c: char| ('\u{5d0}'..='\u{5ea}').contains(&c);
    let mut words: Vec<(usize, usize)> = Vec::new();
    let (mut is_open, mut last) = (false, ' ');
    for (offset, c) in segment.char_indices() {
        let joins = is_mark(c) || (matches!(c, '\'' | '"') && is_hebrew(last));
        let is_word = c.is_alphanumeric() || matches!(c, '\u{3031}' | '\u{6dd}' | '\u{70f}');
        let (from, to) = (start + offset, start + offset + c.len_utf8());
        match words.last_mut().filter(|_| is_open) {
            Some(word) if is_word || joins => word.1 = to,
            _ if is_word => words.push((from, to)),
            _ => {}
        }
        is_open = is_word || (is_open && joins);
        if !is_mark(c) {
            last = c;
        }
    }
    words
}

/// The cases of `WordBreakTest.txt` of Unicode, from the source of the crate `unicode-segmentation`: texts
/// with their segments.
fn word_break_cases() -> Vec<(String, Vec<String>)> {
    let metadata =
        Command::new(env!("CARGO")).args(["metadata", "--format-version=1", "--locked"]).output().unwrap();
    let metadata = String::from_utf8(metadata.stdout).unwrap();
    let manifest = metadata
        .split('"')
        .find(|part| part.contains("/unicode-segmentation-") && part.ends_with("/Cargo.toml"))
        .expect("the crate is a dependency");
    let source = std::fs::read_to_string(manifest.replace("Cargo.toml", "tests/testdata/mod.rs")).unwrap();
    let (_, cases) = source.split_once("TEST_WORD: &[(&str, &[&str])] = &[").unwrap();
    let (cases, _) = cases.split_once("];").unwrap();
    let mut found = Vec::new();
    for case in cases.split("(\"").skip(1) {
        let mut texts = case.split('"').step_by(2).map(unescape);
        let text = texts.next().unwrap();
        // Literals after the segments of this case belong to the text between cases.
        let mut rest = text.as_str();
        let segments = texts.take_while(|segment| {
            let follows = !rest.is_empty() && rest.starts_with(segment.as_str());
            rest = rest.get(segment.len()..).unwrap_or("");
            follows
        });
        let segments: Vec<_> = segments.collect();
        assert_eq!(segments.concat(), text);
        found.push((text, segments));
    }
    found
}

/// The text of a Rust literal whose characters are all written as `\u{..}`.
fn unescape(literal: &str) -> String {
    let codes = literal.split("\\u{").skip(1).map(|code| code.split('}').next().unwrap());
    codes.map(|code| char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap()).collect()
}

#[test]
fn words_are_those_of_the_unicode_test_but_for_the_exceptions() {
    let cases = word_break_cases();
    assert!(cases.len() > 1800, "{} cases", cases.len());
    for (text, segments) in cases {
        let (mut expected, mut start) = (Vec::new(), 0);
        for segment in segments {
            expected.extend(words_of_segment(&segment, start));
            start += segment.len();
        }
        assert_eq!(word_ranges(&text), expected, "{}", text.escape_unicode());
    }
}

#[test]
fn marks_stay_with_their_letter() {
    let words = "\
        दिल्ली বাংলা தமிழ் తెలుగు ಕನ್ನಡ മലയാളം ગુજરાતી සිංහල Tie\u{302}\u{301}ng ʃɪ̃p мо\u{301}ре \
        ܫܠܳܡܳܐ עִבְרִית عَرَبِيّ re\u{301}sume\u{301} ข้าว ປະເທດ c\u{327}a ᠮᠣᠩᠭᠣᠯ ខ្មែរ မြန်မာ ꦗꦮ";
    for word in words.split(' ') {
        assert_eq!(word_ranges(&format!("({word}) ")), [(1, 1 + word.len())], "{word}");
    }
    // A mark that begins a text, or follows a separator, belongs to no word.
    assert_eq!(terms_of("\u{301}a -\u{301}b"), "a b");
}

#[test]
fn invisible_characters_are_dropped() {
    assert_eq!(terms_of("Ge\u{ad}samt\u{ad}kon\u{ad}zept"), "gesamtkonzept");
    assert_eq!(terms_of("می\u{200c}خواهم क्\u{200d}ष"), "میخواهم क्ष");
    assert_eq!(terms_of("\u{feff}bom a\u{2060}b"), "bom ab");
    assert_eq!(terms_of("葛\u{e0100}城 \u{3164}"), "葛城 城");
    assert_eq!(terms_of("ខ្ញុំ\u{200b}ចង់"), terms_of("ខ្ញុំចង់"), "a place to break the line is none to end the run");
    assert_eq!(terms_of("a\u{200b}b"), "a b");
}

#[test]
fn words_are_lower_cased() {
    assert_eq!(terms_of("İstanbul I\u{307}stanbul i\u{307}stanbul"), "istanbul istanbul istanbul");
    assert_eq!(terms_of("ΟΔΟΣ ΟΔΟΣ. ΣΑΣ"), "οδος οδος σας");
    assert_eq!(terms_of("Straße ÇA ĀB"), "straße ça āb");
    assert_eq!(terms_of("x²+½ H₂O naïve—café l’été"), "x² ½ h₂o naïve café l été");
    assert_eq!(terms_of("col·lecció a·1 צה\"ל צה״ל ג'ירפה 'שלום'"), "col·lecció a 1 צה״ל צה״ל ג׳ירפה שלום");
}

#[test]
fn text_without_blanks_becomes_bigrams() {
    assert_eq!(terms_of("東京都に"), "東京 京都 都に に");
    assert_eq!(terms_of("東"), "東");
    assert_eq!(terms_of("2020年5月"), "2020 年 5 月");
    assert_eq!(terms_of("Tシャツ、Mサイズ"), "t シャ ャツ ツ m サイ イズ ズ");
    assert_eq!(terms_of("ข้าวดี"), "ข้า าว วดี ดี");
    assert_eq!(terms_of("か\u{3099}き"), "がき き", "clusters are composed");
    assert_eq!(terms_of("한국어 문장"), "한국어 문장");
    assert_eq!(terms_of("๒๕๖๓ 漢漢"), "๒๕๖๓ 漢漢 漢");
}

#[test]
fn compatibility_characters_are_folded_with_accents() {
    let analysis = Analysis { fold_accents: true, ..Analysis::default() };
    let folded = Analyzer::new(&analysis).terms("ﬁnal ＡＢＣ x² ℌerz Łódź ﾊﾟﾝ").join(" ");
    assert_eq!(folded, "final abc x2 herz lodz パン ン");
    assert_eq!(terms_of("ﬁnal"), "ﬁnal");
    let old = Analysis { tokenizer: Tokenizer::Alphanumeric, ..analysis };
    assert_eq!(Analyzer::new(&old).terms("ﬁnal É").join(" "), "ﬁnal e", "indexes of before keep their words");
}

/// A word or two in 30 scripts, and in languages with many marks.
const WORDS_BY_SCRIPT: &str = "\
    résumé naïve; Tiếng Việt; Ελληνικά ΐ; йога ёлка; Հայերեն; עִבְרִית שָׁלוֹם; عَرَبِيّ أمة; \
    ܫܠܳܡܳܐ; ދިވެހި; ߒߞߏ; हिन्दी क़लम; বাংলা কোড়; ਪੰਜਾਬੀ ਖ਼; ગુજરાતી; ଓଡ଼ିଆ କୋ; தமிழ் கோ; తెలుగు ై; \
    ಕನ್ನಡ ಕೋ; മലയാളം കോ; සිංහල කෝ; ภาษาไทย; ພາສາລາວ; བོད་སྐད ཀྵ; မြန်မာ ဦ; ქართული; አማርኛ; ខ្មែរ; \
    ᠮᠣᠩᠭᠣᠯ; ᬩᬮᬶ ᬆ; 한국어; がぎぐ パピプ; 漢字 金; 𑄌𑄋𑄴𑄟 𑄮; Ṩ̣ ǘ Ị̇ ậ";

#[test]
fn composed_and_decomposed_texts_have_the_same_words() {
    for text in WORDS_BY_SCRIPT.split("; ") {
        let (composed, decomposed) = (text.nfc().collect::<String>(), text.nfd().collect::<String>());
        assert_eq!(terms_of(&composed), terms_of(&decomposed), "{text}");
        assert_eq!(terms_of(&composed.to_uppercase()), terms_of(&decomposed.to_uppercase()), "{text}");
        assert!(!terms_of(text).is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ascii_has_the_words_of_the_alphanumeric_tokenizer(text in "[ -~\n\t]{0,80}") {
        let old = Analysis { tokenizer: Tokenizer::Alphanumeric, ..Analysis::default() };
        prop_assert_eq!(terms_of(&text), Analyzer::new(&old).terms(&text).join(" "));
    }

    #[test]
    fn canonically_equal_texts_have_the_same_words(
        text in "[a-zÀ-ỹα-ώА-ёא-תא-ﭏक-ॐ\u{93c}\u{94d}か-ヺกา\u{e48}가각각 \u{300}-\u{331}\u{ad}\u{200d}]{0,12}",
    ) {
        let (composed, decomposed) = (text.nfc().collect::<String>(), text.nfd().collect::<String>());
        prop_assert_eq!(terms_of(&composed), terms_of(&decomposed));
    }
}

fn index_texts(positions: bool, texts: &[String]) -> Index {
    index_texts_with(positions, Analysis::default(), texts)
}

fn index_texts_with(positions: bool, analysis: Analysis, texts: &[String]) -> Index {
    let mut schema = Schema::default();
    (schema.fields[0].positions, schema.fields[0].analysis) = (positions, analysis);
    index_in_memory(&schema, &TestDocument::of_texts(texts), &[texts.len() / 3])
}

fn contains_phrase(text: &str, phrase: &str) -> bool {
    let clusters = |text: &str| text.graphemes(true).map(str::to_string).collect::<Vec<_>>();
    let (text, phrase) = (clusters(text), clusters(phrase));
    text.windows(phrase.len()).any(|window| window == phrase)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// With positions, exactly the documents that contain the text are found; without, also others.
    #[test]
    fn phrases_of_text_without_blanks_are_found(
        texts in prop::collection::vec("[東京都はがวดี\u{e48}]{1,9}( |7|、)[東京都はが]{0,4}", 1..20),
        at in 0usize..6,
        len in 1usize..7,
    ) {
        let clusters: Vec<&str> = texts[0].graphemes(true).collect();
        let phrase: String = clusters[at.min(clusters.len() - 1)..(at + len).min(clusters.len())].concat();
        prop_assume!(phrase.chars().all(|c| !matches!(c, ' ' | '、')) && !phrase.starts_with(['\u{e48}', 'ี']));
        let found = matching_documents(&index_texts(true, &texts), &format!("\"{phrase}\""));
        let expected: BTreeSet<u32> =
            (0..).zip(&texts).filter(|(_, text)| contains_phrase(text, &phrase)).map(|(number, _)| number).collect();
        // Next to a digit the query is several words, which are alternatives, so only the phrase is exact.
        prop_assert_eq!(&found, &expected, "{}", phrase);
        if !phrase.contains('7') {
            prop_assert_eq!(&matching_documents(&index_texts(true, &texts), &phrase), &expected, "{}", phrase);
            prop_assert!(matching_documents(&index_texts(false, &texts), &phrase).is_superset(&expected), "{}", phrase);
        }
    }
}

#[test]
fn queries_of_text_without_blanks() {
    let texts = ["東京都に住む", "京都に行く", "大阪", "5月は", "5月"].map(str::to_string);
    let index = index_texts(true, &texts);
    let found = |query: &str| matching_documents(&index, query).into_iter().collect::<Vec<_>>();
    assert_eq!(found("京"), [0, 1]);
    assert_eq!(found("京都"), [0, 1]);
    assert_eq!(found("東京都"), [0]);
    assert_eq!(found("東京*"), [0]);
    assert_eq!(found("東*"), [0]);
    assert_eq!(found("大阪 京都"), [0, 1, 2]);
    assert_eq!(found("京 -東"), [1]);
    assert_eq!(found("\"5月\""), [3, 4]);
    assert_eq!(found("\"5月は\""), [3]);
    assert_eq!(found("東京都~0"), [0]);
    let (query, notes) = Query::parse_with_notes("東京~1", index.schema()).unwrap();
    assert_eq!(query, Query::parse("東京", index.schema()).unwrap());
    assert!(notes[0].to_string().contains("`東京` has text without blanks, which is not fuzzy"), "{notes:?}");
    // In a query of any term, each bigram is a term of its own.
    let bag = Query::any_term("東京都市", index.schema()).unwrap();
    assert_eq!(bag, Query::parse("東京 京都 都市", index.schema()).unwrap());
    // A run with more terms than a phrase may have.
    let long = "漢字".repeat(70);
    assert!(Query::parse(&long, index.schema()).is_ok());
}

#[test]
fn prefixes_in_greek_do_not_end_a_word() {
    let texts = ["ΟΔΟΣ ΟΔΟΣΗΜΑΝΣΗ", "ΟΔΟΣΗΜΑΝΣΗ", "άλλο"].map(str::to_string);
    let index = index_texts(false, &texts);
    for query in ["ΟΔΟΣ*", "οδοσ*", "οδος*"] {
        let found =
            answer_text(&index, query, AnswerOptions { shown: 0, ..AnswerOptions::default() }).unwrap();
        let scores: Vec<_> = found.hits.iter().map(|hit| f32::from_bits(hit.score_bits)).collect();
        assert_eq!(scores, [1.0, 1.0], "{query}");
    }
}

#[test]
fn turkish_is_lower_cased_like_other_languages() {
    let analysis = Analysis { stemmer: Some(Language::Turkish), ..Analysis::default() };
    let mut analyzer = Analyzer::new(&analysis);
    assert_eq!(analyzer.terms("İYİ"), analyzer.terms("iyi"));
    assert_ne!(analyzer.terms("IŞIK"), analyzer.terms("ışık"), "docs/query.md says so");
}

#[test]
fn the_last_character_of_a_phrase_may_begin_very_many_terms() {
    let begun = |count: u32| (0..count).map(|next| format!("的{}", char::from_u32(0x4e00 + next).unwrap()));
    for (count, expected) in [(1000, vec![0]), (1100, vec![0, 1])] {
        let texts: Vec<String> =
            ["5的", "的5", "5"].map(str::to_string).into_iter().chain(begun(count)).collect();
        let index = index_texts(true, &texts);
        let found = matching_documents(&index, "\"5的\"");
        assert!(found.iter().eq(&expected), "{count} terms: {found:?}");
        assert_eq!(matching_documents(&index, "的").len(), 2 + count as usize);
    }
}

/// Each word of a text, and each character of text without blanks, finds the text, with all kinds of
/// analysis.
#[test]
fn each_word_of_a_text_finds_it() {
    let words = ["ﬁn ½ ＡＢＣ", "ΟΔΟΣ İz résumé", "हिन्दी עִבְרִית"];
    let runs = ["น้ำดื่ม ทำงาน น้ำ", "ນ້ຳ ປະເທດ", "㌔と㍍ ﾊﾟﾝ パン", "東京、我们爱", "ꦗꦮ ᬩᬮᬶ မြန်မာ ខ្មែរ"];
    let texts: Vec<String> = words.iter().chain(&runs).map(|text| text.to_string()).collect();
    for (fold_accents, positions) in [(false, false), (true, false), (false, true), (true, true)] {
        let stop_words = vec!["我们".to_string(), "爱".to_string()];
        let analysis = Analysis { fold_accents, stop_words, ..Analysis::default() };
        let index = index_texts_with(positions, analysis, &texts);
        for (number, text) in (0..).zip(&texts) {
            let characters = text.graphemes(true).filter(|_| number >= words.len() as u32);
            let parts = text.split([' ', '、']).chain(characters);
            // A vowel sign alone is not a word.
            let is_asked =
                |part: &&str| !part.contains(['我', '们', '爱', ' ', '、']) && !terms_of(part).is_empty();
            for part in parts.filter(is_asked) {
                for query in [part.to_string(), part.nfd().collect()] {
                    let found = matching_documents(&index, &query);
                    assert!(found.contains(&number), "{query} folded {fold_accents}");
                }
            }
        }
        // A run whose terms are stop words does not belong to the run before it.
        assert_eq!(matching_documents(&index, "東京、我们 大").len(), 1);
    }
}

/// Later versions must divide texts into the same words, or they would not find those of an existing index.
/// Other words need a new tokenizer, with its own number in the manifest.
#[test]
fn the_words_of_all_characters_are_pinned() {
    const EXPECTED_SUMS: (u64, u64) = (9_888_172, 17_251_889_090_323_710_094);
    let mut analyzers =
        [false, true].map(|fold_accents| Analyzer::new(&Analysis { fold_accents, ..Analysis::default() }));
    let (mut hash, mut count) = (0xcbf2_9ce4_8422_2325_u64, 0_u64);
    for c in '\0'..=char::MAX {
        let text = format!("{c} a{c}b \u{e01}{c}\u{e32} {c}\u{301}");
        for analyzer in &mut analyzers {
            analyzer.analyze(&text, 0, |token| {
                for byte in token.term.bytes().chain([0xff]) {
                    hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
                }
                count += 1;
            });
        }
    }
    assert_eq!((count, hash), EXPECTED_SUMS);
}
