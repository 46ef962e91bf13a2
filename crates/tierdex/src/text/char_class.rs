//! Character classes of the `unicode` tokenizer, which follow from the properties of Unicode.
//!
//! They are stored in a generated file rather than asked of a library: documents and queries must be divided
//! into the same words, whatever the version of Unicode that a library has. A test compares the file with the
//! libraries. A tokenizer with other classes would be a new one, with its own number in the manifest.

use super::char_ranges::CHAR_RANGES;
use std::{collections::HashMap, sync::LazyLock};

/// The role of a character in words. WB4 and so on are rules of UAX 29, "Unicode Text Segmentation", section
/// 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum CharKind {
    /// A character that ends a word.
    Separator = 0,
    /// A letter of a script that separates words by blanks, or a number that is not a decimal digit.
    Letter = 1,
    /// A decimal digit (Word_Break=Numeric).
    Digit = 2,
    /// A Hebrew letter: quotation marks between Hebrew letters belong to the word (WB7a to WB7c).
    Hebrew = 3,
    /// A mark or format character, which belongs to the character before it (WB4).
    Extend = 4,
    /// As [`CharKind::Extend`], but invisible: it is left out of the term (Default_Ignorable_Code_Point).
    Ignorable = 5,
    /// A character that joins the letters around it to one word (WB6, WB7), as in Catalan `col·lecció`.
    Middle = 6,
    /// A character of a script without blanks (Chinese, Japanese) that is a grapheme cluster, unless a mark
    /// follows.
    Ideograph = 7,
    /// A character of a script without blanks whose grapheme clusters may have several characters: Thai, Lao,
    /// Khmer, Burmese, Javanese, Balinese and other scripts of Southeast Asia.
    Complex = 8,
}

/// A [`CharKind`], and the flags that say whether a word with the character must be normalized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CharClass(u8);

/// The bits of a [`CharKind`] in a class, and the flags for which [`CharClass`] has methods.
const KIND_MASK: u8 = 0x0f;
const IS_LOWERED: u8 = 0x10;
const FLAG_COMPOSES: u8 = 0x20;
const FLAG_REORDERS: u8 = 0x40;

/// Flag of a range in the generated file: [`IS_LOWERED`] changes from each character of the range to the
/// next, as where each letter follows its capital letter.
const FLAG_ALTERNATES: u8 = 0x80;

impl CharClass {
    /// The class of a character.
    #[inline]
    pub(super) fn of(c: char) -> CharClass {
        let c = c as usize;
        let table = &*CHAR_TABLE;
        CharClass(table.blocks[usize::from(table.index[c / BLOCK_CHARS]) * BLOCK_CHARS + c % BLOCK_CHARS])
    }

    #[inline]
    pub(super) fn kind(self) -> CharKind {
        match self.0 & KIND_MASK {
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

    /// Whether the lower case of the character is different.
    #[inline]
    pub(super) fn is_lowered(self) -> bool {
        self.0 & IS_LOWERED != 0
    }

    /// Whether normalization form C may change the character or combine it with its neighbour
    /// (NFC_Quick_Check is not Yes).
    #[inline]
    pub(super) fn composes(self) -> bool {
        self.0 & FLAG_COMPOSES != 0
    }

    /// Whether normalization form C may change the order of adjacent characters of this property
    /// (Canonical_Combining_Class is not zero).
    #[inline]
    pub(super) fn reorders(self) -> bool {
        self.0 & FLAG_REORDERS != 0
    }
}

/// Number of characters in a block of [`CharTable`].
const BLOCK_CHARS: usize = 256;

/// The classes of all characters, in blocks of 256; equal blocks are stored once.
struct CharTable {
    /// For each 256 characters the number of their block.
    index: Vec<u16>,
    /// The class of each character of each block.
    blocks: Vec<u8>,
}

static CHAR_TABLE: LazyLock<CharTable> = LazyLock::new(|| {
    let mut classes = vec![0; char::MAX as usize + 1];
    for (number, start_and_class) in CHAR_RANGES.iter().enumerate() {
        let end = CHAR_RANGES.get(number + 1).map_or(classes.len(), |next| (next >> 8) as usize);
        let (range, class) = (&mut classes[(start_and_class >> 8) as usize..end], *start_and_class as u8);
        range.fill(class & !FLAG_ALTERNATES);
        if class & FLAG_ALTERNATES != 0 {
            range.iter_mut().skip(1).step_by(2).for_each(|class| *class ^= IS_LOWERED);
        }
    }
    let (mut table, mut numbers) = (CharTable { index: Vec::new(), blocks: Vec::new() }, HashMap::new());
    for block in classes.chunks(BLOCK_CHARS) {
        let number = *numbers.entry(block).or_insert_with(|| {
            table.blocks.extend_from_slice(block);
            (table.blocks.len() / BLOCK_CHARS - 1) as u16
        });
        table.index.push(number);
    }
    table
});

#[cfg(test)]
mod tests {
    use super::*;
    use regex_syntax::hir::{Class, HirKind};
    use unicode_normalization::{IsNormalized, char::canonical_combining_class, is_nfc_quick};

    /// The characters of each kind by their Unicode properties; a character in several rows has the last
    /// kind.
    const KIND_PATTERNS: &[(CharKind, &str)] = &[
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

    /// The ranges of the generated file, from the properties that the libraries know.
    fn class_ranges() -> Vec<u32> {
        let mut classes = vec![CharKind::Separator as u8; char::MAX as usize + 1];
        for (kind, pattern) in KIND_PATTERNS {
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
            *class |= if c.to_lowercase().ne([c]) { IS_LOWERED } else { 0 };
            *class |= if is_nfc_quick([c].into_iter()) == IsNormalized::Yes { 0 } else { FLAG_COMPOSES };
            *class |= if canonical_combining_class(c) == 0 { 0 } else { FLAG_REORDERS };
        }
        to_ranges(&classes)
    }

    /// Divides the classes of all characters into ranges of equal, or alternating, classes.
    fn to_ranges(classes: &[u8]) -> Vec<u32> {
        let (mut ranges, mut start) = (Vec::new(), 0);
        while start < classes.len() {
            let rest = &classes[start..];
            let changes = |change: u8| rest.windows(2).take_while(|pair| pair[0] ^ pair[1] == change).count();
            let (equal, alternating) = (1 + changes(0), 1 + changes(IS_LOWERED));
            let is_alternating = alternating > equal.max(2);
            let class = rest[0] | if is_alternating { FLAG_ALTERNATES } else { 0 };
            ranges.push((start as u32) << 8 | u32::from(class));
            start += if is_alternating { alternating } else { equal };
        }
        ranges
    }

    #[test]
    fn ranges_are_those_of_unicode() {
        let mut source = "//! For each range of characters of one class `start << 8 | class` \
             (`char_class.rs`). Generated by\n//! `UPDATE_EXPECT=1 cargo test -p tierdex --lib \
             ranges_are_those_of_unicode`.\n\n#[rustfmt::skip]\npub(super) const CHAR_RANGES: &[u32] = &[\n"
            .to_string();
        for line in class_ranges().chunks(10) {
            let line: Vec<_> = line.iter().map(|range| format!("{range:#x},")).collect();
            source += &format!("    {}\n", line.join(" "));
        }
        expect_test::expect_file!["char_ranges.rs"].assert_eq(&(source + "];\n"));
    }
}
