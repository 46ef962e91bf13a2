package org.tierdex.peer.lucene;

import java.io.IOException;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;

/** The tokens of a line, separated by single spaces. Reused for each line. */
final class Blanks extends TokenStream {
  private final CharTermAttribute term = addAttribute(CharTermAttribute.class);
  private String line = "";
  private int next;

  /** The line whose tokens are to follow. */
  Blanks of(String line) {
    this.line = line;
    return this;
  }

  @Override
  public void reset() throws IOException {
    super.reset();
    next = 0;
  }

  @Override
  public boolean incrementToken() {
    if (next >= line.length()) {
      return false;
    }
    clearAttributes();
    int blank = line.indexOf(' ', next);
    int end = blank < 0 ? line.length() : blank;
    int length = end - next;
    char[] buffer = term.resizeBuffer(length);
    line.getChars(next, end, buffer, 0);
    term.setLength(length);
    next = end + 1;
    return true;
  }
}
