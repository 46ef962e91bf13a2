package org.tierdex.peer.lucene;

/** How the index files are read. */
enum Advice {
  /** All of them are read before the first query. */
  NONE,
  /** On demand, the default of the library. */
  NORMAL,
  /** On demand, with the advice of random access: no read-ahead. */
  RANDOM;

  /** The advice of a word. */
  static Advice parse(String word) {
    return switch (word) {
      case "normal" -> NORMAL;
      case "random" -> RANDOM;
      default -> throw new IllegalArgumentException("`" + word + "` is no advice; there are normal and random");
    };
  }
}
