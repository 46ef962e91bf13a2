package org.tierdex.peer.lucene;

import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.FuzzyQuery;
import org.apache.lucene.search.MatchNoDocsQuery;
import org.apache.lucene.search.PhraseQuery;
import org.apache.lucene.search.PrefixQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.TermQuery;

/**
 * Parses queries of the protocol by recursive descent:
 *
 * <pre>
 * query  = clause*, separated by spaces
 * clause = ["+" | "-" | "#"] (group | phrase | word)
 * group  = "(" query ")" ["~" minimum]
 * phrase = '"' words '"' ["~" slop]
 * word   = term | prefix "*" | term "~" edits
 * </pre>
 *
 * A group of one optional or required clause is that clause.
 */
final class Parser {
  private final String text;
  /** Whether the index has positions. */
  private final boolean positions;
  /** Offset of the next character. */
  private int at;

  private Parser(String text, boolean positions) {
    this.text = text;
    this.positions = positions;
  }

  /** The query of a text; null if it is malformed, or has a phrase and the index has no positions. */
  static Query parse(String text, boolean positions) {
    Parser parser = new Parser(text, positions);
    try {
      Query query = parser.clauses(false);
      return parser.at == text.length() ? query : null;
    } catch (IllegalArgumentException error) {
      return null;
    }
  }

  /** The clauses before the end of the text, or those of a group, its end and its minimum. */
  private Query clauses(boolean nested) {
    BooleanQuery.Builder clauses = new BooleanQuery.Builder();
    int count = 0;
    Query last = new MatchNoDocsQuery();
    BooleanClause.Occur occur = BooleanClause.Occur.SHOULD;
    for (skipBlanks(); at < text.length() && text.charAt(at) != ')'; skipBlanks()) {
      occur = occur();
      last = clause();
      clauses.add(last, occur);
      count++;
    }
    if (nested && !take(')')) {
      throw new IllegalArgumentException("a group has no end");
    }
    int minimum = nested ? number() : 0;
    boolean alone = occur == BooleanClause.Occur.SHOULD || occur == BooleanClause.Occur.MUST;
    if (count == 0 || count == 1 && alone && minimum < 2) {
      return last;
    }
    return clauses.setMinimumNumberShouldMatch(minimum).build();
  }

  private BooleanClause.Occur occur() {
    if (take('+')) {
      return BooleanClause.Occur.MUST;
    }
    if (take('-')) {
      return BooleanClause.Occur.MUST_NOT;
    }
    return take('#') ? BooleanClause.Occur.FILTER : BooleanClause.Occur.SHOULD;
  }

  /** A group, a phrase or a word. */
  private Query clause() {
    if (take('(')) {
      return clauses(true);
    }
    if (take('"')) {
      String[] words = until(text.indexOf('"', at)).split(" ");
      at++;
      int slop = number();
      if (!positions) {
        throw new IllegalArgumentException("the index has no positions");
      }
      return new PhraseQuery(slop, Indexer.TOKENS, words);
    }
    int end = at;
    while (end < text.length() && text.charAt(end) != ' ' && text.charAt(end) != ')') {
      end++;
    }
    return word(until(end));
  }

  private static Query word(String word) {
    if (word.endsWith("*") && word.length() > 1) {
      return new PrefixQuery(new Term(Indexer.TOKENS, word.substring(0, word.length() - 1)));
    }
    int tilde = word.indexOf('~');
    if (tilde < 0) {
      return new TermQuery(new Term(Indexer.TOKENS, word));
    }
    int edits = Integer.parseInt(word.substring(tilde + 1));
    return new FuzzyQuery(new Term(Indexer.TOKENS, word.substring(0, tilde)), edits);
  }

  /** The number behind a {@code ~}; 0 if there is none. */
  private int number() {
    if (!take('~')) {
      return 0;
    }
    int end = at;
    while (end < text.length() && Character.isDigit(text.charAt(end))) {
      end++;
    }
    return Integer.parseInt(until(end));
  }

  private void skipBlanks() {
    while (at < text.length() && text.charAt(at) == ' ') {
      at++;
    }
  }

  private boolean take(char letter) {
    boolean taken = at < text.length() && text.charAt(at) == letter;
    at += taken ? 1 : 0;
    return taken;
  }

  /** Takes the characters before {@code end}, which is negative if the end is missing. */
  private String until(int end) {
    if (end < 0) {
      throw new IllegalArgumentException("a phrase has no end");
    }
    String taken = text.substring(at, end);
    at = end;
    return taken;
  }
}
