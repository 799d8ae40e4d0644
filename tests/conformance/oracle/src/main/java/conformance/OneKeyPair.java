package conformance;

import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.KeyPairGeneratorSpi;
import java.security.NoSuchAlgorithmException;
import java.security.Provider;
import java.security.SecureRandom;
import java.security.Security;

/**
 * The same RSA key pair for everybody who wants one. Each ResourceManager makes keys for the certificates of its web
 * proxy, which nobody here uses, and that took longer than most scenarios.
 */
public final class OneKeyPair extends KeyPairGeneratorSpi {
  private static final int BITS = 1024;
  private static KeyPair pair;

  /** From now on in this JVM. */
  static void install() throws NoSuchAlgorithmException {
    KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
    generator.initialize(BITS);
    pair = generator.generateKeyPair();
    Security.insertProviderAt(new Keys(), 1);
  }

  @Override
  public void initialize(int bits, SecureRandom random) {
    // There is only one.
  }

  @Override
  public KeyPair generateKeyPair() {
    return pair;
  }

  private static final class Keys extends Provider {
    private static final long serialVersionUID = 1L;

    Keys() {
      super("OneKeyPair", "1", "the same RSA key pair for everybody");
      put("KeyPairGenerator.RSA", OneKeyPair.class.getName());
    }
  }
}
