package org.tierdex.peer.lucene;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.apache.lucene.util.Version;

/**
 * Lucene behind the line protocol of {@code tierdex bench serve}: {@code version}, {@code index TOKENS DIR --memory
 * BYTES}, {@code serve DIR [--advice normal|random]}.
 */
public final class Main {
  private static final String USAGE = "usage: version | index TOKENS DIR --memory BYTES | serve DIR [--advice normal|random]";

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
    String command = words.length == 0 ? "" : words[0];
    if (command.equals("version") && words.length == 1) {
      System.out.println("Lucene " + Version.LATEST + ", Java " + Runtime.version().feature());
    } else if (command.equals("index") && words.length == 5 && words[3].equals("--memory")) {
      System.out.println(Indexer.run(Path.of(words[1]), Path.of(words[2]), Long.parseLong(words[4])) + " documents");
    } else if (command.equals("serve") && words.length == 2) {
      serve(Path.of(words[1]), Advice.NONE);
    } else if (command.equals("serve") && words.length == 4 && words[2].equals("--advice")) {
      serve(Path.of(words[1]), Advice.parse(words[3]));
    } else {
      throw new IllegalArgumentException(USAGE);
    }
  }

  private static void serve(Path dir, Advice advice) throws IOException {
    PrintStream output = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    try (Server server = new Server(dir, advice)) {
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
