//! Parsed queries, their faults, and lenient parsing.

use super::*;
use crate::Error;
use crate::limits::{QUERY_CLAUSES_MAX, QUERY_WARNINGS_MAX};
use proptest::prelude::*;

/// Queries with their trees or faults. Lines that end in a colon are headings.
const PARSED: &str = r#"
Operators:
one => one
a b => (a b)
a OR b => (a b)
a AND b => (+a +b)
a AND b OR c => ((+a +b) c)
a OR b AND c => (a (+b +c))
+a -b c => (+a -b c)
a NOT b => (a -b)
a OR NOT b => (a (-b))
NOT b OR a => ((-b) a)
a AND NOT b => (+a -b)
NOT a => (-a)
(a OR b) AND (c OR d) => (+(a b) +(c d))
"to be" x => ("to be" x)
title:x title:"a b" http://y => (title:x title:"a b" http://y)
state-of c++ \-x \AND => (state-of c++ -x \AND)
 => ()
and or not => (and or not)
Boosts:
a^2 b => (a^2 b)
"a b"^1.5 => "a b"^1.5
(a b)^2 => (a b)^2
((a)^2)^3 => a^2^3
+title:x^.5 -y^0 => (+title:x^0.5 -y^0)
a^1e3 a^-0 *:*^3 => (a^1000 a^-0 *:*^3)
Prefixes and fuzzy words:
wor* title:wor*^2 wor** => (wor* title:wor*^2 wor*)
word~ word~1 word~2 word~0 => (word~2 word~1 word~2 word~0)
word~1^2 word^2~1 => (word~1^2 word~1^2)
*:* AND title:x => (+*:* +title:x)
 * => *:*
The slop of phrases, the minimum of groups:
"a b"~3 => "a b"~3
"a b"~3^2 title:"c d"^2~1 => ("a b"~3^2 title:"c d"~1^2)
(a b c)~2 => (a b c)~2
+x (a OR b OR "c d")~2^4 => (+x (a b "c d")~2^4)
(a)~1 (+a -b)~0 => (a (+a -b))
(a AND b c)~2 => ((+a +b) c)~2
Filters:
#a => (#a)
#(a b) #title:c #"d e" => (#(a b) #title:c #"d e")
a AND #b => (+a #b)
a OR #b => (a (#b))
A field applies to the next clause or group:
title:(a b) => (title:a title:b)
title:(+a "b c" (d~ e*)^2) f => ((+title:a title:"b c" (title:d~2 title:e*)^2) f)
+title:(a) => title:a
title: a b => (title:a b)
title:  "a b" c => (title:"a b" c)
title: (a b) => (title:a title:b)
title:- oak => (title:- oak)
title:-oak => query, byte 1: write `-title:` for `title:-`
title:+oak => query, byte 1: write `+title:` for `title:+`
title:#oak => query, byte 1: write `#title:` for `title:#`
title:!oak => query, byte 1: write `!title:` for `title:!`
title:NOT oak => query, byte 1: write `NOT title:` for `title:NOT`
Fields without a clause behind them are text:
a title: => (a title)
title: AND a => (+title +a)
(title:) => title
cat title:( -dog => (cat title -dog)
title:"dog cat => (title dog cat)
title: -dog => (title -dog)
title: [1] title: <b> x => (title:[1] title:<b> x)
Operator characters in words are literal:
5*3 a*b*c *a => (5*3 a*b*c *a)
a^b x~=y ~user ^_^x ~ ^ => (a^b x~=y ~user ^_^x ~ ^)
a^b^2 c++^2 c++~1 c# => (a^b^2 c++^2 c++~1 c#)
~1 ^2 => (~1 ^2)
\#a \*:* a\* a\~1 a~\1 a\^2 \(a\) => (#a *:* a* a~1 a~\1 a^2 (a))
a\** a\~~1 a\^^2 => (a** a~~1 a^^2)
a\ => a
Signs are operators directly before a clause:
mercury - planet => (mercury - planet)
mercury + planet # x ! y => (mercury + planet # x ! y)
mercury - => (mercury -)
(a -) -"b" -(c) !d !(e f) => ((a -) -"b" -c -d -(e f))
--verbose +-a !!! -+ a-b => (--verbose +-a !!! -+ a-b)
wow! => wow!
U(t)-V "THE"-system => (U t -V "THE" -system)
p ->next a !=b +/-5 apples -=5 => (p ->next a !=b +/-5 apples -=5)
#[derive(b)] a -$x => (#[derive b ] a -$x)
-"a b" -(c d) -\(e -*:* -title:f => (-"a b" -(c d) -(e -*:* -title:f)
Brackets and quotation marks without a pair are text:
(a b => (a b)
a b) [D1]) c => (a b [D1] c)
(a (b c) d => (a (b c) d)
a "b c => (a b c)
"a (b" c) => ("a (b" c)
-(a +b => (- a +b)
Y"=F(x,Y,Y') z => (Y =F x,Y,Y' z)
צה"ל a => (צה"ל a)
"צה"ל a" => "צה"ל a"
"a b"* c => ("a b" c)
Backslashes before letters are text:
\alpha\beta C:\Users\cat "C:\Users" => (\alpha\beta C:\Users\cat "C: Users")
\(a\) \-b \AND c\\d e\ => ((a) -b \AND c\d e)
Suffixes without a number are text:
a^ b^2x => (a^ b^2x)
(a)^NaN (a)^x => (a ^NaN a ^x)
"a b"~ "a b"~x => ("a b" ~ "a b" ~x)
(a b)~ => ((a b) ~)
a * => a
Invalid numbers are faults, except for negative ones, which are text:
a^-1 => a^-1
a^1e999 => query, byte 2: a boost lies between 0 and 1000000000, which `1e999` does not
a^2^3 => query, byte 2: a second `^` behind one clause
a~3 => query, byte 2: a fuzzy word is 0 to 2 edits away, not `3`; write `\~` for the character
a~0.5 => query, byte 2: a fuzzy word is 0 to 2 edits away, not `0.5`; write `\~` for the character
"a b"~99999999999 => query, byte 6: 99999999999 behind `~` is too large; at most 4294967295 can be asked for
(a b)~1.5 => query, byte 6: `~` behind a phrase or a group needs a whole number, not `1.5`
(a b)~3 => query, byte 6: the group has 2 alternatives, of which 3 cannot match
title:* => query, byte 1: `*` needs the beginning of a word in front of it; write `*:*` for all documents
a*~1 => query, byte 1: what ends in `*` cannot be fuzzy too
Operators without a clause are faults:
a AND => query, byte 6: `AND` has nothing on its right
AND a => query, byte 1: `AND` has nothing on its left
a OR => query, byte 5: `OR` has nothing on its right
OR a => query, byte 1: `OR` has nothing on its left
+NOT a => query, byte 2: two of `+`, `-`, `#` and `NOT` in a row
a NOT => query, byte 6: a word is missing here
Operators of other languages are faults in their full form:
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
"#;

fn check_field_name(name: &str) -> std::result::Result<NameKind, String> {
    match name {
        "title" => Ok(NameKind::Field),
        "year" => Ok(NameKind::Column),
        _ => Err("which has `title`".to_string()),
    }
}

fn show_tree(tree: &SyntaxTree) -> String {
    let name = |field: &Option<String>| field.as_ref().map_or(String::new(), |f| format!("{f}:"));
    let tilde = |number: u32| if number > 0 { format!("~{number}") } else { String::new() };
    match tree {
        SyntaxTree::Column { column, ranges, boost, .. } => {
            let end =
                |end: &Option<(String, bool)>| end.as_ref().map_or("*".to_string(), |(text, _)| text.clone());
            let ranges = ranges.iter().map(|range| format!("{}..{}", end(&range.low), end(&range.high)));
            format!("{column}={}^{boost}", ranges.collect::<Vec<_>>().join(","))
        }
        SyntaxTree::Word(field, word) => format!("{}{word}", name(field)),
        SyntaxTree::Prefix(field, word) => format!("{}{word}*", name(field)),
        SyntaxTree::Fuzzy(field, word, distance) => format!("{}{word}~{distance}", name(field)),
        SyntaxTree::Phrase(field, words, slop) => format!("{}\"{words}\"{}", name(field), tilde(*slop)),
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
            format!("({}){}", clauses.collect::<Vec<_>>().join(" "), tilde(*minimum))
        }
    }
}

/// The tree or the fault of a query, and the notes about it.
fn parse_strictly(text: &str) -> (Result<SyntaxTree>, Vec<Error>) {
    let mut problems = Problems::strict();
    let tree = parse(text, &check_field_name, &mut problems);
    (tree, problems.into_warnings())
}

fn parse_leniently(text: &str) -> (SyntaxTree, Vec<Error>) {
    let mut problems = Problems::lenient();
    let tree = parse(text, &check_field_name, &mut problems).unwrap();
    (tree, problems.into_warnings())
}

fn check(text: &str, expected: &str) {
    let shown = parse_strictly(text).0.map_or_else(|fault| fault.to_string(), |tree| show_tree(&tree));
    assert_eq!(shown, expected, "{text}");
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
    for line in PARSED.lines().filter(|line| !line.is_empty() && !line.ends_with(':')) {
        let (text, expected) = line.split_once(" => ").expect("an arrow");
        check(text, expected);
    }
}

#[test]
fn limits_are_faults() {
    let nested = format!("{}a{}", "(".repeat(100), ")".repeat(100));
    check(&nested, "query, byte 66: more than 64 parentheses inside one another");
    check(&"a ".repeat(5000), "query, byte 2049: more than 1024 clauses");
    check(&"a".repeat(70_000), "query, byte 65537: longer than 65536 bytes");
}

#[test]
fn names_that_are_no_field_are_text() {
    for (text, at, name) in [("author:x", 1, "author"), ("a +b_c:\"d\"", 4, "b_c"), ("(x-1:(a b))", 2, "x-1")]
    {
        let (tree, notes) = parse_strictly(text);
        let notes: Vec<_> = notes.iter().map(Error::to_string).collect();
        let reason = "it is not a field of this index, which has `title`";
        assert_eq!(notes, [format!("query, byte {at}: `{name}:` is read as text: {reason}")], "{text}");
        assert!(tree.is_ok() && parse_leniently(text).1.len() == 1, "{text}");
    }
    let texts = r"http://x|12:30|1:x|note: x|x:|std::mem|c:\\x|a.b:c|author\:x|:x|café:x|title:a:b|(x:)";
    for text in texts.split('|') {
        let (tree, notes) = parse_strictly(text);
        assert!(tree.is_ok() && notes.is_empty(), "{text}");
    }
}

/// The search for the end of an operator is bounded, so that reading stays linear in the length of a query.
#[test]
fn operators_that_are_too_long_are_text() {
    for (range, expected) in [(200, true), (300, false)] {
        for text in [format!("[a{}TO b]", " ".repeat(range)), format!("/{}*/", "x".repeat(range))] {
            assert_eq!(parse_strictly(&text).0.is_err(), expected, "{text}");
        }
    }
    for (digits, expected) in [(20, true), (40, false)] {
        let (tree, _) = parse_strictly(&format!("\"a b\"^{}1", "0".repeat(digits)));
        assert_eq!(matches!(tree, Ok(SyntaxTree::Boost(_, 1.0))), expected, "{digits}");
    }
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
        let _ = parse(&text, &counting, &mut Problems::lenient());
        assert!(spelled.get() <= text.len(), "{} letters of {} in {word}", spelled.get(), text.len());
    }
}

#[test]
fn lenient_parsing_ignores_faulty_parts() {
    check_lenient("a) (b \"c", "(a b c)", &["2: this `)` has no pair and is read as text"]);
    let faults = [
        "1: `AND` has nothing on its left",
        "10: a word is missing here",
        "18: `AND` has nothing on its right",
    ];
    check_lenient("AND a OR OR b AND", "(a (+b))", &faults);
    let faults = [
        "7: a fuzzy word is 0 to 2 edits away, not `7`; write `\\~` for the character",
        "33: what ends in `*` cannot be fuzzy too",
        "23: the group has 2 alternatives, of which 9 cannot match",
    ];
    let text = "a^2x b~7 \"c d\"~e (f g)~9 h^-1 * i*~1";
    check_lenient(text, r#"(a^2x b~2 "c d" ~e (f g)~2 h^-1 i*)"#, &faults);
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
        match parse_strictly(&text) {
            (Ok(strict), notes) => {
                prop_assert_eq!(strict, tree);
                prop_assert_eq!(format!("{notes:?}"), format!("{warnings:?}"));
            }
            (Err(error), _) => {
                prop_assert!(warnings.iter().any(|warning| warning.to_string() == error.to_string()) || warnings.len() > QUERY_WARNINGS_MAX);
                let Error::Query { at: Some(at), .. } = error else { return Err(TestCaseError::fail("no offset")) };
                prop_assert!(at <= text.len() && text.is_char_boundary(at));
            }
        }
    }
}
