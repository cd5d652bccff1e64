import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.io.erasurecode.ErasureCoderOptions;
import org.apache.hadoop.io.erasurecode.rawcoder.RSLegacyRawDecoder;
import org.apache.hadoop.io.erasurecode.rawcoder.RSLegacyRawEncoder;
import org.apache.hadoop.io.erasurecode.rawcoder.RSRawDecoder;
import org.apache.hadoop.io.erasurecode.rawcoder.RSRawEncoder;
import org.apache.hadoop.io.erasurecode.rawcoder.RawErasureDecoder;
import org.apache.hadoop.io.erasurecode.rawcoder.RawErasureEncoder;
import org.apache.hadoop.io.erasurecode.rawcoder.XORRawDecoder;
import org.apache.hadoop.io.erasurecode.rawcoder.XORRawEncoder;

/** Serves Hadoop's raw erasure coders over stdin and stdout, with the requests and answers of klauspost.go. */
public final class Hadoop {
  private Hadoop() {}

  static RawErasureEncoder encoder(String variant, ErasureCoderOptions options) {
    switch (variant) {
      case "rs": return new RSRawEncoder(options);
      case "rs-legacy": return new RSLegacyRawEncoder(options);
      case "xor": return new XORRawEncoder(options);
      default: throw new IllegalArgumentException("unknown variant " + variant);
    }
  }

  static RawErasureDecoder decoder(String variant, ErasureCoderOptions options) {
    switch (variant) {
      case "rs": return new RSRawDecoder(options);
      case "rs-legacy": return new RSLegacyRawDecoder(options);
      case "xor": return new XORRawDecoder(options);
      default: throw new IllegalArgumentException("unknown variant " + variant);
    }
  }

  static byte[][] read(DataInputStream in, int count, int length) throws Exception {
    byte[][] shards = new byte[count][length];
    for (byte[] shard : shards) {
      in.readFully(shard);
    }
    return shards;
  }

  static String line(DataInputStream in) throws Exception {
    StringBuilder text = new StringBuilder();
    for (int c = in.read(); c != '\n'; c = in.read()) {
      if (c < 0) {
        return null;
      }
      text.append((char) c);
    }
    return text.toString();
  }

  static byte[][] answer(String[] words, byte[][] shards, int k, int m, int length) throws Exception {
    ErasureCoderOptions options = new ErasureCoderOptions(k, m);
    if (words[0].equals("encode")) {
      byte[][] parity = new byte[m][length];
      encoder(words[1], options).encode(shards, parity);
      return parity;
    }
    String[] names = words[5].split(",");
    int[] lost = new int[names.length];
    for (int i = 0; i < lost.length; i++) {
      lost[i] = Integer.parseInt(names[i]);
      shards[lost[i]] = null;
    }
    byte[][] found = new byte[lost.length][length];
    decoder(words[1], options).decode(shards, lost, found);
    return found;
  }

  public static void main(String[] arguments) throws Exception {
    DataInputStream in = new DataInputStream(new java.io.BufferedInputStream(System.in, 1 << 20));
    OutputStream out = new BufferedOutputStream(System.out, 1 << 20);
    for (String request = line(in); request != null; request = line(in)) {
      String[] words = request.split(" ");
      int k = Integer.parseInt(words[2]);
      int m = Integer.parseInt(words[3]);
      int length = Integer.parseInt(words[4]);
      byte[][] shards = read(in, words[0].equals("encode") ? k : k + m, length);
      try {
        byte[][] found = answer(words, shards, k, m, length);
        out.write(("ok " + found.length * length + "\n").getBytes(StandardCharsets.UTF_8));
        for (byte[] shard : found) {
          out.write(shard);
        }
      } catch (Exception | AssertionError error) {
        String reason = String.valueOf(error).replace('\n', ' ');
        out.write(("refused " + reason + "\n").getBytes(StandardCharsets.UTF_8));
      }
      out.flush();
    }
  }
}
