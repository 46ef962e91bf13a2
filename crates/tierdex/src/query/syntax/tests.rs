//! Parsed queries, their faults, and lenient parsing.

use super::*;
use crate::limits::{QUERY_BYTES_MAX, QUERY_CLAUSES_MAX, QUERY_WARNINGS_MAX};
use expect_test::{Expect, expect};
use proptest::prelude::*;

fn check_field_name(name: &str) -> std::result::Result<(), String> {
    if name == "title" { Ok(()) } else { Err("which has `title`".to_string()) }
}

fn show_tree(tree: &SyntaxTree) -> String {
    let name = |field: &Option<String>| field.as_ref().map_or(String::new(), |f| format!("{f}:"));
    match tree {
        SyntaxTree::Word(field, word) => format!("{}{word}", name(field)),
        SyntaxTree::Prefix(field, word) => format!("{}{word}*", name(field)),
        SyntaxTree::Fuzzy(field, word, distance) => format!("{}{word}~{distance}", name(field)),
        SyntaxTree::Phrase(field, words, 0) => format!("{}\"{words}\"", name(field)),
        SyntaxTree::Phrase(field, words, slop) => format!("{}\"{words}\"~{slop}", name(field)),
        SyntaxTree::All => "*:*".to_string(),
        SyntaxTree::Boost(inner, boost) => format!("{}^{boost}", show_tree(inner)),
        SyntaxTree::List(clauses, minimum) => {
            let clauses = clauses.iter().map(|(occur, node)| {
                let sign = match occur {
                    Occur::Should => "",
                    Occur::Must => "+",
                    Occur::Filter => "#",
                    Occur::MustNot => "-",
                };
                format!("{sign}{}", show_tree(node))
            });
            let minimum = if *minimum > 0 { format!("~{minimum}") } else { String::new() };
            format!("({}){minimum}", clauses.collect::<Vec<_>>().join(" "))
        }
    }
}

/// The tree or the fault of a query.
fn parse_to_text(text: &str) -> String {
    match parse(text, &check_field_name, &mut Problems::strict()) {
        Ok(tree) => show_tree(&tree),
        Err(error) => error.to_string(),
    }
}

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&parse_to_text(text));
}

/// Checks lines of a query, an arrow, and its tree or fault.
fn check_lines(lines: &str) {
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (text, expected) = line.split_once(" => ").expect("an arrow");
        assert_eq!(parse_to_text(text), expected, "{text}");
    }
}

fn parse_leniently(text: &str) -> (SyntaxTree, Vec<Error>) {
    let mut problems = Problems::lenient();
    let tree = parse_lenient(text, &check_field_name, &mut problems).unwrap();
    (tree, problems.into_warnings())
}

/// Checks the tree of a query in lenient parsing, and its warnings without their prefix.
fn check_lenient(text: &str, expected: &str, expected_warnings: &[&str]) {
    let (tree, warnings) = parse_leniently(text);
    let warnings: Vec<String> = warnings.iter().map(Error::to_string).collect();
    let expected_warnings: Vec<String> =
        expected_warnings.iter().map(|warning| format!("query, byte {warning}")).collect();
    assert_eq!((show_tree(&tree).as_str(), warnings), (expected, expected_warnings), "{text}");
}

#[test]
fn queries_are_parsed_as_documented() {
    check("one", expect!["one"]);
    check("a b", expect!["(a b)"]);
    check("a OR b", expect!["(a b)"]);
    check("a AND b", expect!["(+a +b)"]);
    check("a AND b OR c", expect!["((+a +b) c)"]);
    check("a OR b AND c", expect!["(a (+b +c))"]);
    check("+a -b c", expect!["(+a -b c)"]);
    check("a NOT b", expect!["(a -b)"]);
    check("a OR NOT b", expect!["(a (-b))"]);
    check("NOT b OR a", expect!["((-b) a)"]);
    check("a AND NOT b", expect!["(+a -b)"]);
    check("NOT a", expect!["(-a)"]);
    check("(a OR b) AND (c OR d)", expect!["(+(a b) +(c d))"]);
    check("\"to be\" x", expect![[r#"("to be" x)"#]]);
    check("title:x title:\"a b\" http://y", expect![[r#"(title:x title:"a b" http://y)"#]]);
    check("state-of c++ \\-x \\AND", expect![[r#"(state-of c++ -x \AND)"#]]);
    check("", expect!["()"]);
    check("and or not", expect!["(and or not)"]);
}

#[test]
fn clauses_are_boosted() {
    check("a^2 b", expect!["(a^2 b)"]);
    check("\"a b\"^1.5", expect![[r#""a b"^1.5"#]]);
    check("(a b)^2", expect!["(a b)^2"]);
    check("((a)^2)^3", expect!["a^2^3"]);
    check("+title:x^.5 -y^0", expect!["(+title:x^0.5 -y^0)"]);
    check("a^1e3", expect!["a^1000"]);
    check("a^-0", expect!["a^-0"]);
    check("*:*^3", expect!["*:*^3"]);
}

#[test]
fn prefixes_and_fuzzy_words_are_parsed() {
    check("wor*", expect!["wor*"]);
    check("title:wor*^2", expect!["title:wor*^2"]);
    check("wor**", expect!["wor*"]);
    check("word~ word~1 word~2 word~0", expect!["(word~2 word~1 word~2 word~0)"]);
    check("word~1^2 word^2~1", expect!["(word~1^2 word~1^2)"]);
    check("*:* AND title:x", expect!["(+*:* +title:x)"]);
}

#[test]
fn phrases_have_slop_and_groups_a_minimum() {
    check("\"a b\"~3", expect![[r#""a b"~3"#]]);
    check("\"a b\"~3^2 title:\"c d\"^2~1", expect![[r#"("a b"~3^2 title:"c d"~1^2)"#]]);
    check("(a b c)~2", expect!["(a b c)~2"]);
    check("+x (a OR b OR \"c d\")~2^4", expect![[r#"(+x (a b "c d")~2^4)"#]]);
    check("(a)~1 (+a -b)~0", expect!["(a (+a -b))"]);
    check("(a AND b c)~2", expect!["((+a +b) c)~2"]);
}

#[test]
fn filters_match_and_do_not_score() {
    check("a #b", expect!["(a #b)"]);
    check("#a", expect!["(#a)"]);
    check("#(a b) #title:c #\"d e\"", expect![[r#"(#(a b) #title:c #"d e")"#]]);
    check("a AND #b", expect!["(+a #b)"]);
    check("a OR #b", expect!["(a (#b))"]);
}

#[test]
fn a_field_applies_to_its_group() {
    check_lines(
        r#"
        title:(a b) => (title:a title:b)
        title:(+a "b c" (d~ e*)^2) f => ((+title:a title:"b c" (title:d~2 title:e*)^2) f)
        +title:(a) => title:a
        "#,
    );
}

#[test]
fn operator_characters_in_words_are_literal() {
    check("5*3 a*b*c *a", expect!["(5*3 a*b*c *a)"]);
    check("a^b x~=y ~user ^_^x ~ ^", expect!["(a^b x~=y ~user ^_^x ~ ^)"]);
    check("a^b^2 c++^2 c++~1 c#", expect!["(a^b^2 c++^2 c++~1 c#)"]);
    check("~1 ^2", expect!["(~1 ^2)"]);
    check("\\#a \\*:* a\\* a\\~1 a~\\1 a\\^2 \\(a\\)", expect![[r#"(#a *:* a* a~1 a~\1 a^2 (a))"#]]);
    check("a\\** a\\~~1 a\\^^2", expect!["(a** a~~1 a^^2)"]);
    check("a\\", expect!["a"]);
}

#[test]
fn names_that_are_no_field_are_text() {
    let note = |at, name| {
        format!(
            "query, byte {at}: `{name}:` is read as text: it is not a field of this index, which has `title`"
        )
    };
    for (text, at, name) in [("author:x", 1, "author"), ("a +b_c:\"d\"", 4, "b_c"), ("(x-1:(a b))", 2, "x-1")]
    {
        let mut problems = Problems::strict();
        assert!(parse(text, &check_field_name, &mut problems).is_ok(), "{text}");
        let notes: Vec<_> = problems.into_warnings().iter().map(Error::to_string).collect();
        assert_eq!(notes, [note(at, name)], "{text}");
        assert_eq!(parse_leniently(text).1.len(), 1);
    }
    for text in [
        "http://x",
        "12:30",
        "1:x",
        "note: x",
        "x:",
        "std::mem",
        "c:\\\\x",
        "a.b:c",
        "author\\:x",
        ":x",
        "caf\u{e9}:x",
        "title:a:b",
        "(x:)",
    ] {
        let mut problems = Problems::strict();
        assert!(parse(text, &check_field_name, &mut problems).is_ok(), "{text}");
        assert!(problems.into_warnings().is_empty(), "{text}");
    }
}

#[test]
fn fields_apply_to_the_next_clause() {
    check("title: a b", expect!["(title:a b)"]);
    check("title:  \"a b\" c", expect![[r#"(title:"a b" c)"#]]);
    check("title: (a b)", expect!["(title:a title:b)"]);
    check("a title:", expect!["(a title)"]);
    check("title: AND a", expect!["(+title +a)"]);
    check("(title:)", expect!["title"]);
    for sign in ["-", "+", "#", "!"] {
        let error =
            parse(&format!("title:{sign}oak"), &check_field_name, &mut Problems::strict()).unwrap_err();
        assert!(error.to_string().contains(&format!("write `{sign}title:`")), "{error}");
    }
    check("title:NOT oak", expect!["query, byte 1: write `NOT title:` for `title:NOT`"]);
    check("title:- oak", expect!["(title:- oak)"]);
}

#[test]
fn signs_are_operators_before_a_clause() {
    check("mercury - planet", expect!["(mercury - planet)"]);
    check("mercury + planet # x ! y", expect!["(mercury + planet # x ! y)"]);
    check("mercury -", expect!["(mercury -)"]);
    check("(a -) -\"b\" -(c) !d !(e f)", expect![[r#"((a -) -"b" -c -d -(e f))"#]]);
    check("--verbose +-a !!! -+ a-b", expect!["(--verbose +-a !!! -+ a-b)"]);
    check("wow!", expect!["wow!"]);
    check("U(t)-V \"THE\"-system", expect![[r#"(U t -V "THE" -system)"#]]);
}

#[test]
fn brackets_and_quotation_marks_without_a_pair_are_text() {
    check("(a b", expect!["(a b)"]);
    check("a b) [D1]) c", expect!["(a b [D1] c)"]);
    check("(a (b c) d", expect!["(a (b c) d)"]);
    check("a \"b c", expect!["(a b c)"]);
    check("\"a (b\" c)", expect![[r#"("a (b" c)"#]]);
    check("-(a +b", expect!["(- a +b)"]);
    check("Y\"=F(x,Y,Y') z", expect!["(Y =F x,Y,Y' z)"]);
    check("\u{5e6}\u{5d4}\"\u{5dc} a", expect![[r#"(צה"ל a)"#]]);
    check("\"\u{5e6}\u{5d4}\"\u{5dc} a\"", expect![[r#""צה"ל a""#]]);
    check("\"a b\"* c", expect![[r#"("a b" c)"#]]);
}

#[test]
fn backslashes_before_letters_are_text() {
    check_lines(
        r#"
        \alpha\beta C:\Users\cat "C:\Users" => (\alpha\beta C:\Users\cat "C: Users")
        \(a\) \-b \AND c\\d e\ => ((a) -b \AND c\d e)
        "#,
    );
}

#[test]
fn signs_before_punctuation_are_text() {
    check("p ->next a !=b +/-5 apples -=5", expect!["(p ->next a !=b +/-5 apples -=5)"]);
    check("#[derive(b)] a -$x", expect!["(#[derive b ] a -$x)"]);
    check("-\"a b\" -(c d) -\\(e -*:* -title:f", expect![[r#"(-"a b" -(c d) -(e -*:* -title:f)"#]]);
}

#[test]
fn fields_without_a_pair_behind_them_are_text() {
    check("cat title:( -dog", expect!["(cat title -dog)"]);
    check("title:\"dog cat", expect!["(title dog cat)"]);
    check("title: -dog", expect!["(title -dog)"]);
    check("title: [1] title: <b> x", expect!["(title:[1] title:<b> x)"]);
}

/// The search for the end of an operator is bounded, so that reading stays linear in the length of a query.
#[test]
fn operators_that_are_too_long_are_text() {
    let is_fault = |text: &str| parse(text, &check_field_name, &mut Problems::strict()).is_err();
    for (range, expected) in [(200, true), (300, false)] {
        assert_eq!(is_fault(&format!("[a{}TO b]", " ".repeat(range))), expected, "a range of {range} bytes");
        let expression = format!("/{}*/", "x".repeat(range));
        assert_eq!(is_fault(&expression), expected, "an expression of {range} bytes");
    }
    let with_boost = |digits: usize| {
        matches!(
            parse(&format!("\"a b\"^{}1", "0".repeat(digits)), &check_field_name, &mut Problems::strict()),
            Ok(SyntaxTree::Boost(_, 1.0))
        )
    };
    assert!(with_boost(20) && !with_boost(40));
}

#[test]
fn operators_of_other_languages() {
    check_lines(
        r#"
        a && b => (+a +b)
        a || b => (a b)
        a&&b || c => (a&&b c)
        && a || => (&& a ||)
        a -!b => (a -!b)
        /s.l.r./ /exact/ /usr/bin/ a/b/ / => (/s.l.r./ /exact/ /usr/bin/ a/b/ /)
        x /wor.*d/ => query, byte 3: regular expressions are not supported; write `\/` for the character
        title:/wor.*d/ => query, byte 7: regular expressions are not supported; write `\/` for the character
        title:[a TO b] => query, byte 7: ranges are not supported; write `\[` or `\{` for the character
        x {a TO b} => query, byte 3: ranges are not supported; write `\[` or `\{` for the character
        [1,2] {x} [a to b] M TO N] => ([1,2] {x} [a to b] M TO N])
        title:>5 => query, byte 1: ranges are not supported; write `title\:` for the word
        NEAR(a b, 5) => query, byte 1: `NEAR` is no operator; write `"one two"~5` for words at a distance of 5
        a NEAR/5 b => query, byte 3: `NEAR` is no operator; write `"one two"~5` for words at a distance of 5
        NEAR THE NEARBY NEAR/ => (NEAR THE NEARBY NEAR/)
        "#,
    );
}

#[test]
fn field_lookup_is_linear_in_the_text() {
    for word in [":", "a:", "a\\:", "title:", "a:title:"] {
        let text = word.repeat(QUERY_BYTES_MAX / word.len());
        let spelled = std::cell::Cell::new(0);
        let counting = |name: &str| {
            spelled.set(spelled.get() + name.len());
            check_field_name(name)
        };
        // The result may be a fault.
        let _ = parse_lenient(&text, &counting, &mut Problems::lenient());
        assert!(spelled.get() <= text.len(), "{} letters of {} in {word}", spelled.get(), text.len());
    }
}

#[test]
fn faults_name_their_offset() {
    check("a AND", expect!["query, byte 6: `AND` has nothing on its right"]);
    check("AND a", expect!["query, byte 1: `AND` has nothing on its left"]);
    check("a OR", expect!["query, byte 5: `OR` has nothing on its right"]);
    check("OR a", expect!["query, byte 1: `OR` has nothing on its left"]);
    check(
        &format!("{}a{}", "(".repeat(100), ")".repeat(100)),
        expect!["query, byte 66: more than 64 parentheses inside one another"],
    );
    check("+NOT a", expect!["query, byte 2: two of `+`, `-`, `#` and `NOT` in a row"]);
    check("a NOT", expect!["query, byte 6: a word is missing here"]);
    check(&"a ".repeat(5000), expect!["query, byte 2049: more than 1024 clauses"]);
    check(&"a".repeat(70_000), expect!["query, byte 65537: longer than 65536 bytes"]);
}

#[test]
fn suffixes_without_a_number_are_text() {
    check("a^", expect!["a^"]);
    check("a b^2x", expect!["(a b^2x)"]);
    check("(a)^NaN", expect!["(a ^NaN)"]);
    check("(a)^x", expect!["(a ^x)"]);
    check("\"a b\"~", expect![[r#"("a b" ~)"#]]);
    check("\"a b\"~x", expect![[r#"("a b" ~x)"#]]);
    check("(a b)~", expect!["((a b) ~)"]);
    check("a *", expect!["a"]);
    check(" *", expect!["*:*"]);
}

#[test]
fn invalid_numbers_are_faults() {
    check_lines(
        r#"
        a^-1 => a^-1
        a^1e999 => query, byte 2: a boost lies between 0 and 1000000000, which `1e999` does not
        a^2^3 => query, byte 2: a second `^` behind one clause
        a~3 => query, byte 2: a fuzzy word is 0 to 2 edits away, not `3`; write `\~` for the character
        a~0.5 => query, byte 2: a fuzzy word is 0 to 2 edits away, not `0.5`; write `\~` for the character
        "a b"~99999999999 => query, byte 6: 99999999999 behind `~` is too large; at most 4294967295 can be asked for
        (a b)~3 => query, byte 6: the group has 2 alternatives, of which 3 cannot match
        title:* => query, byte 1: `*` needs the beginning of a word in front of it; write `*:*` for all documents
        a*~1 => query, byte 1: what ends in `*` cannot be fuzzy too
        "#,
    );
}

#[test]
fn lenient_parsing_ignores_faulty_parts() {
    check_lenient("(a b", "(a b)", &["1: this `(` has no pair and is read as text"]);
    check_lenient("a) b", "(a b)", &["2: this `)` has no pair and is read as text"]);
    check_lenient("a \"b c", "(a b c)", &["3: this `\"` has no pair and is read as text"]);
    check_lenient(
        "AND a OR OR b AND",
        "(a (+b))",
        &[
            "1: `AND` has nothing on its left",
            "10: a word is missing here",
            "18: `AND` has nothing on its right",
        ],
    );
    check_lenient(
        "a^2x b~7 \"c d\"~e (f g)~9 h^-1 * i*~1",
        r#"(a^2x b~2 "c d" ~e (f g)~2 h^-1 i*)"#,
        &[
            "7: a fuzzy word is 0 to 2 edits away, not `7`; write `\\~` for the character",
            "33: what ends in `*` cannot be fuzzy too",
            "23: the group has 2 alternatives, of which 9 cannot match",
        ],
    );
    let (tree, warnings) = parse_leniently(&"a ".repeat(5000));
    assert!(matches!(tree, SyntaxTree::List(clauses, 0) if clauses.len() == QUERY_CLAUSES_MAX));
    assert_eq!(warnings.len(), 1);
    let (tree, warnings) = parse_leniently(&format!("b {} c", "(".repeat(100) + "a" + &")".repeat(100)));
    assert_eq!((show_tree(&tree).as_str(), warnings.len()), ("(b () c)", 1));
    assert_eq!(parse_leniently(&"a~9 ".repeat(100)).1.len(), QUERY_WARNINGS_MAX + 1);
    let (tree, warnings) = parse_leniently(&"ä".repeat(40_000));
    assert!(matches!(tree, SyntaxTree::Word(None, word) if word.len() == QUERY_BYTES_MAX));
    assert_eq!(warnings[0].to_string(), "query, byte 65537: longer than 65536 bytes");
}

const TEXTS: &str = "[ab ()\"+:\\\\*~^#0-9.-]{0,40}|( AND| OR| NOT|[+#-]|a|\\(|\\)|\"|~1|\\^2|\\*| title:| \\*:\\*){0,20}|\\PC{0,40}";

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_is_parsed_or_rejected(text in TEXTS) {
        let (tree, warnings) = parse_leniently(&text);
        let mut problems = Problems::strict();
        match parse(&text, &check_field_name, &mut problems) {
            Ok(strict) => {
                prop_assert_eq!(strict, tree);
                prop_assert_eq!(format!("{:?}", problems.into_warnings()), format!("{warnings:?}"));
            }
            Err(error) => {
                prop_assert!(warnings.iter().any(|warning| warning.to_string() == error.to_string()) || warnings.len() > QUERY_WARNINGS_MAX);
                let Error::Query { at: Some(at), .. } = error else { return Err(TestCaseError::fail("no offset")) };
                prop_assert!(at <= text.len() && text.is_char_boundary(at));
            }
        }
    }
}
