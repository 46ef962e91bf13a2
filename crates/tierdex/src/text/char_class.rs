//! Character classes of the `unicode` tokenizer, from the properties of Unicode.
//!
//! The classes are ranges in a generated file rather than calls of a library: an index must be searched with
//! the words it was written with, whatever the version of Unicode that a library has. A test compares them
//! with the libraries; other classes are another tokenizer, with a number of its own in the manifest.

use super::char_ranges::CHAR_RANGES;
use std::{collections::HashMap, sync::LazyLock};

/// What a character is to the tokenizer. WB are rules of UAX 29, "Unicode Text Segmentation", section 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum CharKind {
    /// Ends a word.
    Separator = 0,
    /// A letter of words that blanks separate, or a number that is no digit.
    Letter = 1,
    /// A decimal digit (Word_Break=Numeric).
    Digit = 2,
    /// A Hebrew letter: quotation marks between Hebrew letters belong to the word (WB7a to WB7c).
    Hebrew = 3,
    /// A mark or format character, which belongs to the character before it (WB4).
    Extend = 4,
    /// Like [`CharKind::Extend`], but invisible: it is not part of the term (Default_Ignorable_Code_Point).
    Ignorable = 5,
    /// Joins the letters around it (WB6, WB7), as in Catalan `col·lecció`.
    Middle = 6,
    /// A character of a script without blanks, which is a grapheme cluster unless a mark follows.
    Ideograph = 7,
    /// A character of a script without blanks whose grapheme clusters are longer: Thai, Lao, Khmer, Burmese,
    /// Javanese, Balinese and other scripts of Southeast Asia.
    Complex = 8,
}

/// A kind with the properties that say which words need no normalization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CharClass(u8);

const KIND: u8 = 0x0f;
const LOWERED: u8 = 0x10;
const COMPOSES: u8 = 0x20;
const REORDERS: u8 = 0x40;

/// Only in the generated file: [`LOWERED`] changes from each character of the range to the next, as where
/// each letter follows its capital letter.
const ALTERNATES: u8 = 0x80;

impl CharClass {
    /// The class of a character.
    #[inline]
    pub(super) fn of(c: char) -> CharClass {
        let c = c as usize;
        let table = &*TABLE;
        CharClass(table.blocks[usize::from(table.index[c / BLOCK]) * BLOCK + c % BLOCK])
    }

    #[inline]
    pub(super) fn kind(self) -> CharKind {
        match self.0 & KIND {
            0 => CharKind::Separator,
            1 => CharKind::Letter,
            2 => CharKind::Digit,
            3 => CharKind::Hebrew,
            4 => CharKind::Extend,
            5 => CharKind::Ignorable,
            6 => CharKind::Middle,
            7 => CharKind::Ideograph,
            _ => CharKind::Complex,
        }
    }

    /// Whether its lower case is another character.
    #[inline]
    pub(super) fn is_lowered(self) -> bool {
        self.0 & LOWERED != 0
    }

    /// Whether it may change or be combined with its neighbour in NFC (NFC_Quick_Check is not Yes).
    #[inline]
    pub(super) fn composes(self) -> bool {
        self.0 & COMPOSES != 0
    }

    /// Whether two such characters in a row may be in another order in NFC (Canonical_Combining_Class is not
    /// zero).
    #[inline]
    pub(super) fn reorders(self) -> bool {
        self.0 & REORDERS != 0
    }
}

/// Characters of a block of the table.
const BLOCK: usize = 256;

/// The classes of all characters: the index has the number of the block for each 256 characters.
struct CharTable {
    index: Vec<u16>,
    blocks: Vec<u8>,
}

static TABLE: LazyLock<CharTable> = LazyLock::new(|| {
    let mut classes = vec![0; char::MAX as usize + 1];
    for (number, (start, class)) in CHAR_RANGES.iter().enumerate() {
        let end = CHAR_RANGES.get(number + 1).map_or(classes.len(), |(next, _)| *next as usize);
        let range = &mut classes[*start as usize..end];
        range.fill(*class & !ALTERNATES);
        if *class & ALTERNATES != 0 {
            range.iter_mut().skip(1).step_by(2).for_each(|class| *class ^= LOWERED);
        }
    }
    let (mut table, mut numbers) = (CharTable { index: Vec::new(), blocks: Vec::new() }, HashMap::new());
    for block in classes.chunks(BLOCK) {
        let number = *numbers.entry(block).or_insert_with(|| {
            table.blocks.extend_from_slice(block);
            (table.blocks.len() / BLOCK - 1) as u16
        });
        table.index.push(number);
    }
    table
});

#[cfg(test)]
mod tests {
    use super::*;
    use regex_syntax::hir::{Class, HirKind};
    use unicode_normalization::char::canonical_combining_class;
    use unicode_normalization::{IsNormalized, is_nfc_quick};

    /// The kinds by the properties of their characters; a later row replaces earlier ones.
    const KINDS: &[(CharKind, &str)] = &[
        (CharKind::Letter, r"[\p{Alphabetic}\p{N}\p{wb=ALetter}]"),
        (
            CharKind::Ideograph,
            r"[[\p{sc=Han}\p{sc=Hira}\p{wb=Katakana}\p{sc=Tang}\p{sc=Nshu}\p{sc=Kits}]&&[\p{Alphabetic}\p{N}\p{wb=Katakana}]]",
        ),
        (
            CharKind::Complex,
            r"[[\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}\p{sc=Tale}\p{sc=Talu}\p{sc=Lana}\p{sc=Tavt}\p{sc=Ahom}\p{sc=Java}\p{sc=Bali}]&&\p{Alphabetic}]",
        ),
        (CharKind::Digit, r"\p{wb=Numeric}"),
        (CharKind::Hebrew, r"\p{wb=Hebrew_Letter}"),
        (CharKind::Middle, r"[\u{B7}\u{387}\u{55F}\u{5F4}\u{2027}]"),
        (CharKind::Extend, r"[\p{wb=Extend}\p{wb=Format}\p{wb=ZWJ}]"),
        (CharKind::Ignorable, r"[\p{Default_Ignorable_Code_Point}--\u{200B}]"),
    ];

    fn classes() -> Vec<(u32, u8)> {
        let mut classes = vec![CharKind::Separator as u8; char::MAX as usize + 1];
        for (kind, pattern) in KINDS {
            let HirKind::Class(Class::Unicode(class)) = regex_syntax::parse(pattern).unwrap().into_kind()
            else {
                panic!("{pattern} is no class of characters")
            };
            for range in class.ranges() {
                classes[range.start() as usize..=range.end() as usize].fill(*kind as u8);
            }
        }
        for c in '\0'..=char::MAX {
            let class = &mut classes[c as usize];
            *class |= if c.to_lowercase().ne([c]) { LOWERED } else { 0 };
            *class |= if is_nfc_quick([c].into_iter()) == IsNormalized::Yes { 0 } else { COMPOSES };
            *class |= if canonical_combining_class(c) == 0 { 0 } else { REORDERS };
        }
        ranges(&classes)
    }

    fn ranges(classes: &[u8]) -> Vec<(u32, u8)> {
        let (mut ranges, mut start) = (Vec::new(), 0);
        while start < classes.len() {
            let rest = &classes[start..];
            let changes = |change: u8| rest.windows(2).take_while(|pair| pair[0] ^ pair[1] == change).count();
            let (equal, alternating) = (1 + changes(0), 1 + changes(LOWERED));
            let is_alternating = alternating > equal.max(2);
            ranges.push((start as u32, rest[0] | if is_alternating { ALTERNATES } else { 0 }));
            start += if is_alternating { alternating } else { equal };
        }
        ranges
    }

    #[test]
    fn ranges_are_those_of_unicode() {
        let mut source = "//! The start of each range of characters of one class, and the class \
             (`char_class.rs`). Generated by\n//! `UPDATE_EXPECT=1 cargo test -p tierdex --lib \
             ranges_are_those_of_unicode`.\n\n#[rustfmt::skip]\npub(super) const CHAR_RANGES: &[(u32, u8)] \
             = &[\n"
            .to_string();
        for line in classes().chunks(8) {
            let line: Vec<_> =
                line.iter().map(|(start, class)| format!("({start:#x}, {class:#x}),")).collect();
            source += &format!("    {}\n", line.join(" "));
        }
        expect_test::expect_file!["char_ranges.rs"].assert_eq(&(source + "];\n"));
    }
}
