package org.tierdex.peer.lucene;

/** A command of the protocol, with its k. */
record Command(Kind kind, int k) {
  enum Kind {
    COUNT,
    TOP,
    TOP_COUNT,
    DOCS
  }

  /** The command of a word; null if there is none. */
  static Command parse(String word) {
    if (word.equals("COUNT")) {
      return new Command(Kind.COUNT, 0);
    }
    if (word.startsWith("DOCS_")) {
      return of(Kind.DOCS, word.substring("DOCS_".length()));
    }
    if (!word.startsWith("TOP_")) {
      return null;
    }
    String rest = word.substring("TOP_".length());
    return rest.endsWith("_COUNT")
        ? of(Kind.TOP_COUNT, rest.substring(0, rest.length() - "_COUNT".length()))
        : of(Kind.TOP, rest);
  }

  private static Command of(Kind kind, String digits) {
    try {
      int k = Integer.parseInt(digits);
      return k > 0 ? new Command(kind, k) : null;
    } catch (NumberFormatException error) {
      return null;
    }
  }
}
