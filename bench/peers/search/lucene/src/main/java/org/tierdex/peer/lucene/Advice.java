package org.tierdex.peer.lucene;

/** How files are read that hold the index. */
enum Advice {
  /** All of them before the first query. */
  NONE,
  /** When they are needed, as the library comes. */
  NORMAL,
  /** When they are needed, and the system is told that pages are read here and there, so that it reads none ahead. */
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
