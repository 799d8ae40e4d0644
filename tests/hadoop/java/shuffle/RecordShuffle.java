/* Run it with the jars of hadoop-mapreduce-client-app 3.4.1; see tests/nm/shuffle/test_hadoops_replies.py. */
package org.apache.hadoop.mapred;

import java.io.*;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import javax.crypto.SecretKey;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalDirAllocator;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.security.SecureShuffleUtils;
import org.apache.hadoop.mapreduce.security.token.*;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.server.api.*;

/** Serves map outputs by Hadoop's own ShuffleHandler, and prints requests and replies as lines of JSON. */
public class RecordShuffle {
  static String b64(byte[] data) { return Base64.getEncoder().encodeToString(data); }

  public static void main(String[] args) throws Exception {
    File root = new File(args[0]);
    Configuration conf = new Configuration();
    conf.setInt("mapreduce.shuffle.port", Integer.parseInt(args[1]));
    ShuffleHandler handler = new ShuffleHandler();
    handler.setAuxiliaryLocalPathHandler(new AuxiliaryLocalPathHandler() {
      public Path getLocalPathForRead(String path) throws IOException {
        File f = new File(root, path);
        if (!f.exists()) throw new IOException("Could not find " + path + " in any of the local directories.");
        return new Path(f.toString());
      }
      public Path getLocalPathForWrite(String path) throws IOException { return new Path(new File(root, path).toString()); }
      public Path getLocalPathForWrite(String path, long size) throws IOException { return getLocalPathForWrite(path); }
      public Iterable<Path> getAllLocalPathsForRead(String path) throws IOException { return Collections.singletonList(getLocalPathForRead(path)); }
    });
    handler.init(conf);
    handler.start();
    ApplicationId app = ApplicationId.newInstance(1795222023200L, 7);
    byte[] secret = "shuffle secret".getBytes();
    Token<JobTokenIdentifier> token = new Token<>(new JobTokenIdentifier(new Text("job_1795222023200_0007")).getBytes(), secret, new Text("mapreduce.job"), new Text(""));
    ByteBuffer data = ShuffleHandler.serializeServiceData(token);
    byte[] serviceData = new byte[data.remaining()]; data.duplicate().get(serviceData);
    int port = ShuffleHandler.deserializeMetaData(handler.getMetaData());
    byte[] meta = new byte[4]; handler.getMetaData().duplicate().get(meta);
    System.out.println("{\"service_data\": \"" + b64(serviceData) + "\", \"metadata\": \"" + b64(meta) + "\", \"port\": " + port + "}");
    String user = args[2];
    // map outputs, their indexes written by Hadoop's SpillRecord
    for (int map = 0; map < 3; map++) {
      File dir = new File(root, "usercache/" + user + "/appcache/" + app + "/output/attempt_1795222023200_0007_m_00000" + map + "_0");
      dir.mkdirs();
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      SpillRecord record = new SpillRecord(3);
      for (int reduce = 0; reduce < 3; reduce++) {
        StringBuilder part = new StringBuilder();
        for (int i = 0; i < (map + 1) * (reduce == 2 ? 60 : reduce); i++) part.append("<" + map + " for " + reduce + ">");
        byte[] bytes = part.toString().getBytes();
        record.putIndex(new IndexRecord(out.size(), bytes.length + 2, bytes.length), reduce);
        out.write(bytes);
      }
      Files.write(new File(dir, "file.out").toPath(), out.toByteArray());
      record.writeToFile(new Path(new File(dir, "file.out.index").toString()), new JobConf(conf));
      System.out.println("{\"attempt\": \"" + dir.getName() + "\", \"output\": \"" + b64(out.toByteArray()) + "\", \"index\": \""
          + b64(Files.readAllBytes(new File(dir, "file.out.index").toPath())) + "\"}");
    }
    handler.initializeApplication(new ApplicationInitializationContext(user, app, data));
    SecretKey key = JobTokenSecretManager.createSecretKey(secret);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    String line;
    while ((line = in.readLine()) != null) {
      // name TAB path TAB method TAB proof(right|none|wrong) TAB versions(yes|no)
      String[] w = line.split("\t");
      String proof = SecureShuffleUtils.hashFromString(port + w[1], key);
      StringBuilder r = new StringBuilder(w[2] + " " + w[1] + " HTTP/1.1\r\n");
      if (w[3].equals("right")) r.append("UrlHash: " + proof + "\r\n");
      if (w[3].equals("wrong")) r.append("UrlHash: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n");
      if (w[4].equals("yes")) r.append("name: mapreduce\r\nversion: 1.0.0\r\n");
      r.append("User-Agent: Java\r\nHost: 127.0.0.1:" + port + "\r\nAccept: text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2\r\nConnection: keep-alive\r\n\r\n");
      try (Socket s = new Socket("127.0.0.1", port)) {
        s.setSoTimeout(20000);
        s.getOutputStream().write(r.toString().getBytes(StandardCharsets.ISO_8859_1));
        ByteArrayOutputStream reply = new ByteArrayOutputStream();
        byte[] buf = new byte[65536]; int n;
        String end = "closed";
        try { while ((n = s.getInputStream().read(buf)) > 0) reply.write(buf, 0, n); } catch (IOException e) { end = e.toString(); }
        System.out.println("{\"case\": \"" + w[0] + "\", \"request\": \"" + b64(r.toString().getBytes()) + "\", \"reply\": \"" + b64(reply.toByteArray()) + "\", \"end\": \"" + end + "\"}");
      }
    }
    System.exit(0);
  }
}
