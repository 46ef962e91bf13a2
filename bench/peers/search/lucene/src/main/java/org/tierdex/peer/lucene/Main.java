package org.tierdex.peer.lucene;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import org.apache.lucene.search.similarities.BM25Similarity;
import org.apache.lucene.util.Version;

/**
 * Lucene behind the line protocol of {@code tierdex-bench serve}: {@code version}, {@code index TOKENS DIR
 * [--memory BYTES] [--positions] [--commit-every DOCUMENTS]}, {@code serve DIR [--advice normal|random] [--k1
 * K1] [--b B]}.
 */
public final class Main {
  private static final String USAGE =
      "usage: version | index TOKENS DIR [--memory BYTES] [--positions] [--commit-every DOCUMENTS]"
          + " | serve DIR [--advice normal|random] [--k1 K1] [--b B]";

  private Main() {}

  /** Runs a command; what fails is one line on standard error. */
  public static void main(String[] words) {
    try {
      run(words);
    } catch (IOException | IllegalArgumentException error) {
      System.err.println(error.getMessage());
      System.exit(1);
    }
  }

  private static void run(String[] words) throws IOException {
    Options options = Options.parse(words);
    List<String> names = options.words();
    String command = names.isEmpty() ? "" : names.getFirst();
    if (command.equals("version") && names.size() == 1) {
      System.out.println("Lucene " + Version.LATEST + ", Java " + Runtime.version().feature());
    } else if (command.equals("index") && names.size() == 3) {
      long memory = Long.parseLong(options.get("--memory", "268435456"));
      int every = Integer.parseInt(options.get("--commit-every", "0"));
      Indexer indexer = new Indexer(memory, options.has("--positions"), every);
      System.out.println(indexer.run(Path.of(names.get(1)), Path.of(names.get(2))) + " documents");
    } else if (command.equals("serve") && names.size() == 2) {
      Advice advice = options.has("--advice") ? Advice.parse(options.get("--advice", "")) : Advice.NONE;
      float k1 = Float.parseFloat(options.get("--k1", "1.2"));
      float b = Float.parseFloat(options.get("--b", "0.75"));
      serve(Path.of(names.get(1)), advice, new BM25Similarity(k1, b));
    } else {
      throw new IllegalArgumentException(USAGE);
    }
  }

  private static void serve(Path dir, Advice advice, BM25Similarity similarity) throws IOException {
    PrintStream output = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    try (Server server = new Server(dir, advice, similarity)) {
      say(output, "READY");
      for (String line = input.readLine(); line != null; line = input.readLine()) {
        say(output, server.reply(line.strip()));
      }
    }
  }

  private static void say(PrintStream output, String line) {
    output.print(line + "\n");
    output.flush();
  }
}
