package org.tierdex.peer.lucene;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Words of a command line: those that stand for themselves, and options, with or without a value behind them. */
record Options(List<String> words, Map<String, String> values) {
  private static final Set<String> ALONE = Set.of("--positions");
  private static final Set<String> WITH_VALUE = Set.of("--memory", "--commit-every", "--advice", "--k1", "--b");

  static Options parse(String[] arguments) {
    List<String> words = new ArrayList<>();
    Map<String, String> values = new HashMap<>();
    for (int at = 0; at < arguments.length; at++) {
      String argument = arguments[at];
      if (ALONE.contains(argument)) {
        values.put(argument, "");
      } else if (WITH_VALUE.contains(argument) && at + 1 < arguments.length) {
        values.put(argument, arguments[++at]);
      } else if (argument.startsWith("--")) {
        throw new IllegalArgumentException("`" + argument + "` is no option, or has no value");
      } else {
        words.add(argument);
      }
    }
    return new Options(words, values);
  }

  boolean has(String name) {
    return values.containsKey(name);
  }

  String get(String name, String otherwise) {
    return values.getOrDefault(name, otherwise);
  }
}
